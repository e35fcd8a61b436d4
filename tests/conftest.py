"""For all tests."""

import itertools
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest

# A shell ignores Ctrl-C on behalf of what it runs in the background, and nohup the end of a terminal; some tests send
# these, to themselves and to processes that would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Tests start hundreds of processes. Where a machine is told to keep no bytecode, each would compile our source again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

LASTING_PORTS = range(10_000, 20_000)
"""The system gives none of these to whoever asks for any port."""


@pytest.fixture(scope="session")
def lasting_port() -> Callable[[], int]:
    """Finds ports for servers that end and come back to them: meanwhile nobody takes them, nor the nine after each."""
    own = LASTING_PORTS[::10]
    tried = itertools.count(os.getpid())

    def find() -> int:
        while True:
            port = own[next(tried) % len(own)]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) != 0:
                    return port

    return find


@pytest.fixture(scope="session")
def full_state() -> Callable[[Any], Any]:
    """The state of an engine as one vector: everything that mj_step depends on."""
    import mujoco
    import numpy as np

    def read(engine: Any) -> Any:
        spec = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(engine.model, spec))
        mujoco.mj_getState(engine.model, engine.data, state, spec)
        return state

    return read
