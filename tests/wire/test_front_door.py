import sys
from subprocess import run

import urlab_wire

NAMES = "CATALOGUE DecodeError ErrorCode ErrorReply OpSpec Reply Request decode encode"


def test_the_front_door_shows_these_names() -> None:
    assert urlab_wire.__all__ == NAMES.split()
    assert all(hasattr(urlab_wire, name) for name in urlab_wire.__all__)


def test_the_contract_needs_neither_physics_nor_sockets() -> None:
    seen = "import sys, urlab_wire; print(*{'mujoco', 'zmq', 'urlab', 'urlab_client'} & set(sys.modules))"
    done = run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
