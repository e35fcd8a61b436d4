"""The protocol without our client: pyzmq and msgpack, as any other language would do it.

msgpack does not come with the server: `pip install msgpack`.
"""

import argparse

import msgpack
import zmq

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--address", default="tcp://127.0.0.1")
options.add_argument("--step-port", type=int, default=5559)
where = options.parse_args()

socket = zmq.Context.instance().socket(zmq.REQ)
socket.setsockopt(zmq.RCVTIMEO, 7000)
socket.setsockopt(zmq.LINGER, 0)
socket.connect(f"{where.address}:{where.step_port}")


def ask(op: str, **fields: object) -> dict:
    """One request, one reply."""
    socket.send(msgpack.packb({"op": op, **fields}))
    reply = msgpack.unpackb(socket.recv())
    if reply["op"] == "error":
        raise SystemExit(f"{op}: {reply['code']}: {reply['message']}")
    return reply


hello = ask("hello", observations="minimal")
session = hello["session_id"]
print(f"{hello['urlab_version']}, {len(hello['mjb'])} bytes of model, {len(ask('meta')['ops'])} ops")

ask("set_mode", session_id=session, mode="direct")
ask("reset", session_id=session, keyframe_name="panda_home")
for _ in range(10):
    reply = ask("step", session_id=session, n_steps=10, per_articulation={"panda": {"ctrl_map": {"joint1": 0.3}}})
print(f"time {reply['time']:.3f}, joint1 {reply['per_articulation']['panda']['qpos'][0]:.4f}")
ask("set_mode", session_id=session, mode="live")
socket.close()
