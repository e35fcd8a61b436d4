"""What reading a request may take, whatever it holds: 64 MB and ten times its size."""

import json
import re
import subprocess
import sys
from typing import Any

import msgpack
import pytest

from urlab.ops.parsing import decode_request, request_key
from urlab_wire.ops.runtime import ConfigureControllerRequest
from urlab_wire.ops.scene import SpawnActorRequest
from urlab_wire.ops.stepping import RestoreStateRequest, StepRequest

PROGRAM = r"""
import json, sys
from pathlib import Path
from urlab.app import Server
from urlab.config import ServerConfig
from urlab.ops import request_key

SIZE = 20_000_000
HEAD = b"\x84\xa2op\xa4step\xaasession_id\xa1a\xaarequest_id\x01"
LIST = HEAD + b"\xa4qpos\xdd" + SIZE.to_bytes(4, "big")
PARAMS = b"\x83\xa2op\xb4configure_controller\xaaarticulation\xa1a\xa6params\x81\xa1x\xdd" + SIZE.to_bytes(4, "big")
JSON = b'{"op":"configure_controller","articulation":"a","request_id":1,"session_id":"a","params":{"x":['
BODIES = {
    "integers": lambda: LIST + b"\x00" * SIZE,
    "empty lists": lambda: PARAMS + b"\x90" * SIZE,
    "empty maps": lambda: PARAMS + b"\x80" * SIZE,
    "nested lists": lambda: PARAMS + (b"\x91" * 900 + b"\x00") * (SIZE // 901),
    "timestamps": lambda: PARAMS + b"\xd6\xff\x00\x00\x00\x00" * (SIZE // 6),
    "extensions": lambda: PARAMS + b"\xd4\x05\x00" * (SIZE // 3),
    "small keys": lambda: b"\xdf\x01\x00\x00\x00" + b"".join(b"\xa3%03x\x01" % (i % 4096) for i in range(1 << 22)),
    "deeper than can be": lambda: PARAMS + b"\x91" * SIZE,
    "fields that are not known": lambda: HEAD + b"\xa3abc\xdd" + SIZE.to_bytes(4, "big") + b"\x90" * SIZE,
    "a list that ends early": lambda: LIST + b"\xcb" * 1000,
    "JSON zeros": lambda: JSON + b"0," * (SIZE // 2) + b"0]}}",
    "JSON lists": lambda: JSON + b"[]," * (SIZE // 3) + b"0]}}",
    "JSON maps": lambda: JSON + b'{},' * (SIZE // 3) + b"0]}}",
    "JSON depth": lambda: JSON + b"[" * SIZE,
    "just below the look": lambda: PARAMS[:-4] + (262_000).to_bytes(4, "big") + b"\x80" * 262_000,
    "floats": lambda: HEAD + b"\xa4qpos\xdd" + (6_000_000).to_bytes(4, "big") + (b"\xcb" + bytes(8)) * 6_000_000,
    "binary": lambda: b"\x82\xa2op\xadrestore_state\xa5state\xc6" + SIZE.to_bytes(4, "big") + bytes(SIZE),
    "a text": lambda: b"\x82\xa2op\xadrestore_state\xa4name\xdb" + SIZE.to_bytes(4, "big") + b"a" * SIZE,
}

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if "VmHWM" in line).split()[1])

def resident():
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])

dispatcher = Server(ServerConfig(project=Path(sys.argv[1]), play=False)).dispatcher
told = {}
for name, make in BODIES.items():
    frame = make()
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")
    request_key(frame)
    reply = dispatcher.serve(dispatcher.read(frame))
    told[name] = {"size": len(frame), "grown": peak() - before, "reply": reply[:4000].decode("latin1")}
print(json.dumps(told))
"""
BODIES = re.findall(r'^    "(.+)": lambda', PROGRAM, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a process says of each body that it was given to read: its size, the memory that it took, the reply."""
    project = tmp_path_factory.mktemp("project")
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(project)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory is read from /proc")
@pytest.mark.parametrize("body", BODIES)
def test_a_request_takes_no_more_memory_than_it_may(told: Any, body: str) -> None:
    grown = told[body]["grown"]
    assert grown <= (64 << 20) + 10 * told[body]["size"], f"{grown >> 20} MB"
    assert "error" in told[body]["reply"]


FLOATS = [0.5 + number for number in range(200_000)]


@pytest.mark.parametrize(
    "encode", [msgpack.packb, lambda message: json.dumps(message).encode()], ids=["msgpack", "JSON"]
)
def test_what_programs_send_is_read_however_large(encode: Any) -> None:
    heights = [[0.25 * column for column in range(1000)] for _ in range(1000)]
    spawn = decode_request(
        encode({"op": "spawn_actor", "blueprint": "/Game/x", "heightfield": {"size": [1, 1, 1], "heights": heights}})
    )
    assert isinstance(spawn, SpawnActorRequest)
    step = decode_request(encode({"op": "step", "qpos": FLOATS, "qvel": FLOATS, "n_steps": 1}))
    assert isinstance(step, StepRequest)
    assert step.qpos == FLOATS
    params = decode_request(encode({"op": "configure_controller", "articulation": "a", "params": {"x": "y" * 300_000}}))
    assert isinstance(params, ConfigureControllerRequest)


def test_a_state_of_many_megabytes_is_read() -> None:
    frame = msgpack.packb({"op": "restore_state", "state": bytes(50 << 20), "session_id": "a", "request_id": 7})
    request = decode_request(frame)
    assert isinstance(request, RestoreStateRequest)
    assert len(request.state or b"") == 50 << 20
    assert request_key(frame) == ("a", 7)


def test_a_request_with_too_many_values_says_so(ask: Any, dispatcher: Any) -> None:
    frame = msgpack.packb({"op": "step", "qpos": [0] * 600_000})
    reply = msgpack.unpackb(dispatcher.handle(frame))
    assert reply["code"] == "bad_request"
    assert "500000" in reply["message"]
    assert "float64" in reply["message"]
