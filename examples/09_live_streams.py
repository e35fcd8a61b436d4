"""The live streams with nothing but pyzmq: joints come on the state port, controls go to the control port.

Against a server of your own: ``urlab serve panda``, then ``python examples/09_live_streams.py 5555 5556``.
"""

import json
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import zmq

ROBOT, JOINT, ACTUATOR_ID, TARGET = "panda", "joint1", 0, 0.3


def swing(state: str, control: str) -> None:
    """Turn the first joint until it is there."""
    with zmq.Context() as context, context.socket(zmq.SUB) as sub, context.socket(zmq.PUB) as pub:
        sub.setsockopt(zmq.RCVTIMEO, 10_000)
        sub.setsockopt_string(zmq.SUBSCRIBE, f"{ROBOT}/joint/{JOINT}")
        sub.connect(state)
        pub.connect(control)
        command = struct.pack("<I", 1) + struct.pack("<If", ACTUATOR_ID, TARGET)
        position, deadline = 0.0, time.monotonic() + 20
        while abs(position - TARGET) > 0.02 and time.monotonic() < deadline:
            _, payload = sub.recv_multipart()
            joint_id, position, velocity, _ = struct.unpack("<Ifff", payload)
            pub.send_multipart([f"{ROBOT}/control ".encode(), command])
        print(f"joint {joint_id} is at {position:.3f} rad, moving at {velocity:.3f} rad/s")
        if abs(position - TARGET) > 0.02:
            raise SystemExit(f"it should be at {TARGET}")


if len(sys.argv) == 3:
    swing(*(f"tcp://127.0.0.1:{port}" for port in sys.argv[1:]))
else:
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        ports = [word for name in ("step", "state", "control", "info", "camera") for word in (f"--{name}-port", "0")]
        command = [sys.executable, "-m", "urlab", "serve", "panda", *ports, "--ready-file", str(ready)]
        server = subprocess.Popen([*command, "--project", folder, "--log-level", "warning"])
        try:
            while not ready.exists():
                time.sleep(0.05)
            endpoints = json.loads(ready.read_text())
            swing(endpoints["state"], endpoints["control"])
        finally:
            server.terminate()
            server.wait()
