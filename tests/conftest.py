"""For all tests."""

import compileall
import contextlib
import functools
import importlib.util
import itertools
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more of the machine than of the code.
settings.register_profile("urlab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("urlab")

# A shell ignores Ctrl-C on behalf of what it runs in the background, and nohup the end of a terminal; some tests send
# these, to themselves and to processes that would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Tests start hundreds of processes. Where a machine is told to keep no bytecode, each would compile our source again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Some let files grow to a few bytes only. Python would keep as much of a module that is first imported then, and fail
# to import it ever after: so all are kept before.
if "PYTEST_XDIST_WORKER" not in os.environ:
    compileall.compile_dir(Path(__file__).parents[1] / "src", quiet=2)

# What a user of this machine has saved and set is not a test's business, nor the other way round.
_USER_FOLDERS = tempfile.TemporaryDirectory(prefix="urlab-tests-")
os.environ["XDG_DATA_HOME"] = f"{_USER_FOLDERS.name}/data"
os.environ["XDG_CONFIG_HOME"] = f"{_USER_FOLDERS.name}/config"
for _name in [name for name in os.environ if name.startswith("URLAB_")]:
    del os.environ[_name]


def _load(name: str) -> ModuleType:
    """A file beside this one, as a module."""
    spec = importlib.util.spec_from_file_location(f"urlab_test_{name}", Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PRELOADED = _load("preloaded")
LASTING_PORTS = range(10_000, 20_000)
"""The system gives none of these to a socket that binds to any port."""

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
"""Which of the processes that run tests side by side this is, and how many there are."""

STARTS_PROCESSES = (
    "campaign",
    "client/test_batch.py",
    "client/test_following.py",
    "client/test_modes.py",
    "client/test_programs.py",
    "client/transports/test_repeated_blocks.py",
    "client/transports/test_shm.py",
    "client/transports/test_shm_attacks.py",
    "client/transports/test_shm_server.py",
    "client/transports/test_zmq_server.py",
    "compliance/test_actors.py",
    "compliance/test_callers.py",
    "compliance/test_camera_freshness.py",
    "compliance/test_cameras.py",
    "compliance/test_documented_protocol.py",
    "compliance/test_exports.py",
    "compliance/test_hostile_requests.py",
    "compliance/test_levels.py",
    "compliance/test_outliner.py",
    "compliance/test_paths.py",
    "compliance/test_play.py",
    "compliance/test_step_limits.py",
    "compliance/test_transports_together.py",
    "compliance/test_uploads.py",
    "compliance/test_views.py",
    "compliance/test_zmq_clients.py",
    "examples",
    "pages",
    "soak",
    "test_preloaded.py",
    "urlab/authoring/test_building_with_the_client.py",
    "urlab/authoring/test_history.py",
    "urlab/authoring/test_world.py",
    "urlab/cameras",
    "urlab/cli",
    "urlab/envs/test_processes.py",
    "urlab/envs/test_single_env.py",
    "urlab/envs/test_vector_env.py",
    "urlab/evaluation/http",
    "urlab/evaluation/policies/test_oracle_policy.py",
    "urlab/evaluation/policies/test_oracle_skills.py",
    "urlab/evaluation/runs",
    "urlab/evaluation/simulation/test_cameras.py",
    "urlab/evaluation/simulation/test_episode.py",
    "urlab/evaluation/simulation/test_simulation.py",
    "urlab/evaluation/tasks/test_layout.py",
    "urlab/evaluation/test_docs.py",
    "urlab/evaluation/test_exporting.py",
    "urlab/evaluation/test_front_door.py",
    "urlab/evaluation/workers",
    "urlab/export/test_film.py",
    "urlab/export/test_lerobot.py",
    "urlab/export/test_readers.py",
    "urlab/importing",
    "urlab/ops/test_large_requests.py",
    "urlab/physics/test_worker_pool.py",
    "urlab/policies",
    "urlab/recording/test_files.py",
    "urlab/recording/test_journal.py",
    "urlab/recording/test_stream.py",
    "urlab/ros2/bridge",
    "urlab/ros2/dds",
    "urlab/ros2/services",
    "urlab/ros2/test_bridge_processes.py",
    "urlab/test_app.py",
    "urlab/test_child_process.py",
    "urlab/test_editor_process.py",
    "urlab/test_files.py",
    "urlab/test_fork.py",
    "urlab/test_health.py",
    "urlab/test_paths.py",
    "urlab/test_plugins.py",
    "urlab/transport/rpc/test_curve_server.py",
    "urlab/transport/test_guard.py",
    "urlab/viewport",
    "wire/test_shm_wait.py",
)
"""Folders and files whose tests start servers, workers or commands, or take long (those that draw do): they are run
first, and `make test-fast` leaves them out."""


@functools.cache
def starts_processes(path: Path) -> bool:
    """Is this one of those folders and files, or within one?"""
    tests = Path(__file__).parent
    return any(path.is_relative_to(tests / one) for one in STARTS_PROCESSES)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cold", action="store_true", help="start every process as a user does, imports and all")
    parser.addoption("--fast", action="store_true", help="leave out what starts processes or takes long")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --fast, what starts processes or takes long is not even imported."""
    return True if config.getoption("--fast") and starts_processes(collection_path) else None


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--cold") and sys.version_info < (3, 14):  # what is replaced there is private to Python
        config.add_cleanup(PRELOADED.fork_preloaded().close)


@pytest.fixture
def cold_start() -> Iterator[None]:
    """Processes of the test start as they do for a user, imports and all."""
    with PRELOADED.not_preloaded():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what starts processes: it takes longest."""
    items.sort(key=lambda item: not starts_processes(item.path))


@pytest.fixture(scope="session")
def lasting_port() -> Callable[[], int]:
    """Finds ports for servers that end and come back to them; they and the nine after each stay free meanwhile."""
    own = LASTING_PORTS[::10][WORKER::WORKERS]
    tried = itertools.count(os.getpid())

    def find() -> int:
        while True:
            port = own[next(tried) % len(own)]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) != 0:
                    return port

    return find


@pytest.fixture(scope="session")
def halt() -> Callable[[int], None]:
    """Stops a process in its tracks (SIGSTOP), and returns when every thread of it stands still."""

    def stop(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        while any(state not in "TtZ" for state in states(pid)):
            time.sleep(0.001)

    def states(pid: int) -> Iterator[str]:
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
                yield stat.read_text().rpartition(")")[2].split()[0]

    return stop


_SWAPS = """
import os, sys
name, targets = sys.argv[1], sys.argv[2:]
os.symlink(targets[0], name)
print("ready", flush=True)
while True:
    for target in targets:
        os.symlink(target, name + ".new")
        os.rename(name + ".new", name)
"""


@pytest.fixture
def swapping() -> Iterator[Callable[..., None]]:
    """Lets a process turn a link to one target after the other, all the time, until the test ends."""
    started: list[subprocess.Popen[bytes]] = []

    def swap(link: Path, *targets: Path) -> None:
        command = [sys.executable, "-c", _SWAPS, str(link), *map(str, targets)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        assert started[-1].stdout is not None
        assert started[-1].stdout.readline() == b"ready\n"

    yield swap
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def open_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Starts Chromium with options of its command line; it is a `Browser` of browser.py and ends with the test."""
    browser = _load("browser")
    program = browser.find_browser()
    if program is None:
        pytest.skip("there is no Chromium here: apt-get install chromium, or name one in the variable CHROMIUM")
    opened = []

    def start(*flags: str) -> Any:
        opened.append(browser.Browser(program, tmp_path_factory.mktemp("browser"), *flags))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture(autouse=True)
def logging_and_signals_as_before() -> Iterator[None]:
    """What a command sets up for its process, when it runs in that of the tests, ends with the test."""
    logger, client = logging.getLogger("urlab"), logging.getLogger("urlab_client")
    before = logger.level, logger.handlers[:], logger.propagate, client.parent
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    logger.setLevel(before[0])
    logger.handlers[:], logger.propagate, client.parent = before[1:]
    for number, handler in handlers.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


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
