"""Commands of ours without the time it takes to import them: they are forked from a process that has done so.

`fork_preloaded` makes `subprocess` of this process start ``python -m urlab...`` in that way, the campaign too,
programs (``-c``) whose first line is `MARK`, and the limited child that checks an import. Everything else, and what
differs in more than its arguments (another ``PYTHONPATH``, another user), is started as ever. The result is a child of
this process like any other: a process id, pipes, signals, an exit code. The workers of an evaluation server and what a
supervisor starts are made in the same way. Only the start of the interpreter, the imports and taking the modules apart
at the end are not tried: `not_preloaded` is for tests of them.

Run as ``python preloaded.py FD`` this file is the process that imports and forks. It has one thread.
"""

import atexit
import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import importlib
import io
import json
import os
import pickle
import resource
import runpy
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

MODULES = (
    "urlab.app",
    "urlab.cli.main",
    "urlab.evaluation.http.app",
    "urlab.evaluation.workers.worker",
    "urlab.evaluation.runs",
    "urlab.evaluation.policies",
    "urlab.evaluation.report",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.httptools_impl",
    "urlab.ros2",
    "urlab.ros2.bridge",
    "urlab.ros2.dds",
    "urlab.ros2.services",
    "psutil",
)
MARK = "# preloaded\n"
CHECK = "urlab.importing.check_child"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
OF_CHECK = ("MALLOC_ARENA_MAX", "MUJOCO_GL")
"""Variables that the check of an import has and others have not: it draws nothing."""

MAY_DIFFER = (
    *("COLUMNS", "FORCE_COLOR", "HOME", "LINES", "NO_COLOR", "PYTEST_", "TERM", "URLAB_", "XDG_", *ONE_THREAD),
    *("PYGAME_",),  # Gymnasium sets one, for a library that we do not use
    *("CYCLONEDDS_URI", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS"),
)
"""How the names of variables begin that nothing of ours reads while it is imported."""

NAME = "preloaded"
"""How the system calls the process that forks: it is not one of those that it made."""

_SET_NAME, _SUBREAPER = 15, 36
_LARGEST_REQUEST = 128 << 10
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_fork_exec: Any = subprocess._fork_exec  # type: ignore[attr-defined]


class Preloaded:
    """The process that forks, as those see it that want processes; any thread may use it."""

    def __init__(self, pipe: socket.socket | None = None) -> None:
        """Without a pipe to it, it is started when it is first needed."""
        self._pipe, self._lock = pipe, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = dict(os.environ)
        self._user = os.getresuid(), os.getresgid()
        self.is_used = True

    def fork_exec(self, *terms: Any) -> int:
        """In place of what `subprocess` calls to start a program, with its arguments; the process id."""
        args, _, close_fds, keep, cwd, env_list, stdin, _, _, stdout, _, stderr, _, failure, *more = terms
        _, session, group, gid, gids, uid, umask, before = more[:8]
        environment = os.environ if env_list is None else dict(os.fsdecode(one).split("=", 1) for one in env_list)
        is_usual = close_fds and group == -1 and gid is gids is uid is None and umask < 0
        if not is_usual or not self._is_preloaded([os.fsdecode(word) for word in args], environment):
            return int(_fork_exec(*terms))
        files = {0: stdin, 1: stdout, 2: stderr}
        files = {number: number if given == -1 else given for number, given in files.items()}
        files |= {number: number for number in keep if number != failure}
        asked = {
            "words": [os.fsdecode(word) for word in args[1:]],
            "folder": str(Path.cwd()) if cwd is None else os.fsdecode(cwd),
            "environment": dict(environment),
            "files": [number for number, given in files.items() if _is_open(given)],
            "session": bool(session),
            "ignored": [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_IGN],
            "limits": [resource.getrlimit(one) for one in _LIMITS],
            "cores": sorted(os.sched_getaffinity(0)),
            "before": before,
        }
        try:
            request = pickle.dumps(asked)
        except (AttributeError, pickle.PicklingError):  # a function of a function
            return int(_fork_exec(*terms))
        if len(request) > _LARGEST_REQUEST or not Path(asked["folder"]).is_dir():
            return int(_fork_exec(*terms))
        return self._ask(request, [files[number] for number in asked["files"]])

    def _is_preloaded(self, args: Sequence[str], environment: Any) -> bool:
        if not self.is_used or args[0] != sys.executable or len(args) < 3:
            return False
        is_ours = args[1] == "-m" and args[2].partition(".")[0] in ("tests", "urlab")
        is_check = args[1:3] == ["-I", "-S"] and args[-1] == CHECK
        if not is_ours and not is_check and not (args[1] == "-c" and args[2].startswith(MARK)):
            return False
        ours = self._environment
        differing = {name for name in ours.keys() | environment.keys() if ours.get(name) != environment.get(name)}
        if is_check:
            differing.difference_update(OF_CHECK)
        is_same_user = (os.getresuid(), os.getresgid()) == self._user
        return is_same_user and all(name.startswith(MAY_DIFFER) for name in differing)

    def _ask(self, request: bytes, files: list[int]) -> int:
        """The new process is left by its parent as soon as it is there: it becomes a child of this one."""
        prctl = ctypes.CDLL(None).prctl
        with self._lock:
            if self._pipe is None:
                self._start()
            assert self._pipe is not None
            prctl(_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._pipe, [request], files)
                return int(self._pipe.recv(64))
            finally:
                prctl(_SUBREAPER, 0, 0, 0, 0)

    def _start(self) -> None:
        """In a folder of its own, as a test may watch who looks into the one where it works."""
        self._pipe, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        place, pipe, environment = Path(__file__).absolute(), theirs.fileno(), {**self._environment, **ONE_THREAD}
        command = [sys.executable, str(place), str(pipe)]
        with theirs:
            self._process = subprocess.Popen(command, pass_fds=(pipe,), env=environment, cwd=place.parent)

    def close(self) -> None:
        """Go back to starting processes as ever."""
        subprocess._fork_exec = _fork_exec  # type: ignore[attr-defined]
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.wait()


def fork_preloaded(pipe: socket.socket | None = None) -> Preloaded:
    """From now on, for this process."""
    preloaded = Preloaded(pipe)
    subprocess._fork_exec = preloaded.fork_exec  # type: ignore[attr-defined]
    return preloaded


@contextlib.contextmanager
def not_preloaded() -> Iterator[None]:
    """What is started meanwhile starts as it does for a user, imports and all."""
    preloaded = getattr(subprocess._fork_exec, "__self__", None)  # type: ignore[attr-defined]
    if not isinstance(preloaded, Preloaded) or not preloaded.is_used:
        yield
        return
    preloaded.is_used = False
    try:
        yield
    finally:
        preloaded.is_used = True


def _is_open(file: int) -> bool:
    try:
        fcntl.fcntl(file, fcntl.F_GETFD)
    except OSError:
        return False
    return True


def _import_everything() -> None:
    for name in MODULES:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    for name in ("urlab.__main__", "urlab.evaluation.workers.worker", CHECK):
        sys.modules.pop(name, None)
    gc.collect()
    gc.freeze()
    threads = list(Path("/proc/self/task").iterdir())
    assert len(threads) == 1, f"{len(threads)} threads after imports: nothing can be forked safely"


def _serve(pipe: socket.socket) -> dict[str, Any] | None:
    """Fork when asked. Returns in every process that was made so, with what it is to be; None at the end."""
    while True:
        request, files, *_ = socket.recv_fds(pipe, _LARGEST_REQUEST, 64)
        if not request:
            return None
        ready, begin = os.pipe(), os.pipe()
        between = os.fork()
        if between == 0:
            made = os.fork()
            if made:
                os.write(ready[1], str(made).encode())
                os._exit(0)
            os.close(begin[1])
            os.read(begin[0], 1)
            for one in (*ready, begin[0]):
                os.close(one)
            pipe.close()
            asked: dict[str, Any] = pickle.loads(request)
            _place_files(dict(zip(asked["files"], files, strict=True)))
            return asked
        os.waitpid(between, 0)
        pipe.send(os.read(ready[0], 64))
        for one in (*ready, *begin, *files):
            os.close(one)


def _place_files(files: dict[int, int]) -> None:
    """Let these numbers stand for these open files, and for no others."""
    above = max(*files, *files.values(), 2) + 1
    moved = {number: fcntl.fcntl(given, fcntl.F_DUPFD, above) for number, given in files.items()}
    for number in {0, 1, 2, *files.values()}:
        with contextlib.suppress(OSError):
            os.close(number)
    for number, given in moved.items():
        os.dup2(given, number)
        os.close(given)


def _become(asked: dict[str, Any]) -> None:
    """Everything that a new process has from its parent and its command line."""
    if asked["session"]:
        os.setsid()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for limit, given in zip(_LIMITS, asked["limits"], strict=True):
        if resource.getrlimit(limit) != tuple(given):
            resource.setrlimit(limit, tuple(given))
    if sorted(os.sched_getaffinity(0)) != asked["cores"]:
        os.sched_setaffinity(0, asked["cores"])
    for number in _SIGNALS:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in asked["ignored"] else usual)
    if asked["before"] is not None:
        asked["before"]()
    sys.path[0] = asked["folder"]
    sys.stdin = sys.__stdin__ = _stream(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w")  # type: ignore[misc]
    if sys.stderr is not None:
        faulthandler.enable(2)  # by SIGABRT a test learns where one stands that does not end


def _stream(number: int, mode: str) -> Any:
    if not _is_open(number):
        return None
    is_error = number == 2
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    file = open(number, mode + "b", buffering=0 if at_once and mode == "w" else -1, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        file,
        errors="backslashreplace" if is_error else None,
        line_buffering=is_error or os.isatty(number),
        write_through=at_once,
    )


def _fork_for(asked: dict[str, Any]) -> None:
    """A process that starts others gets one that forks for it: to fork is safe as long as there is one thread."""
    subprocess._fork_exec = _fork_exec  # type: ignore[attr-defined]
    kind, what, *words = asked["words"]
    is_program = kind == "-c" and "urlab.evaluation" in what
    if words[:1] != ["eval"] and "--supervise" not in words and what != "tests.campaign" and not is_program:
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        for number in asked["files"]:
            os.close(number)
        _main(theirs)
    theirs.close()
    atexit.register(fork_preloaded(ours).close)


def _run(kind: str, what: str, *words: str) -> None:
    """As ``python KIND WHAT WORDS...`` would."""
    sys.argv[1:] = words
    if kind == "-I":  # python -I -S confine.py TERMS python -P -m CHECK
        script, terms, *_ = words
        runpy.run_path(script)["confine"](json.loads(terms))
        kind, what, sys.argv[1:] = "-m", words[-1], []
        del sys.path[0]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv[0], sys.path[0] = kind, ""
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), vars(sys.modules["__main__"]))


def _main(pipe: socket.socket) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _set_name(NAME)
    asked = _serve(pipe)
    if asked is None:
        os._exit(0)
    _set_name("python")
    _become(asked)
    _fork_for(asked)
    _end_after(asked["words"])


def _end_after(words: list[str]) -> NoReturn:
    """End without taking every module apart, which means to copy all of the memory that was forked: 0.1 s."""
    code: Any = 0
    is_interrupted = False
    try:
        _run(*words)
    except SystemExit as ended:
        code = ended.code
    except BaseException as failed:  # noqa: BLE001 - as Python itself does
        sys.excepthook(type(failed), failed, failed.__traceback__)
        code, is_interrupted = 1, isinstance(failed, KeyboardInterrupt)
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for one in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            one.flush()
    if is_interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code if isinstance(code, int) else int(code is not None))


def _set_name(name: str) -> None:
    ctypes.CDLL(None).prctl(_SET_NAME, name.encode(), 0, 0, 0)


if __name__ == "__main__":
    _import_everything()
    _main(socket.socket(fileno=int(sys.argv[1])))
