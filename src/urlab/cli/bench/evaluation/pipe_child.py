"""Child processes that do something small each time they are told to, through a pipe."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Self

from urlab.cli.complaint import CommandError

RESET, ONCE = "reset", "once"
_LIMIT_S = 30.0


class PipeChild:
    """A module of ours in a process of its own. Leaving the context ends it."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"MUJOCO_GL": "egl", **os.environ},
        )

    def tell(self, word: str) -> None:
        """Tell it to do something; `wait` for it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as gone:
            raise self._ended() from gone

    def wait(self) -> None:
        """Until it has done what it was told."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise self._ended()

    def _ended(self) -> CommandError:
        return CommandError(f"{self._module} ended by itself, with code {self._process.wait(_LIMIT_S)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            self._process.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def tell_all(children: Sequence[PipeChild], word: str) -> None:
    """Tell them at the same time, and wait for all."""
    for child in children:
        child.tell(word)
    for child in children:
        child.wait()


def obey(reset: Callable[[], object], once: Callable[[], object]) -> None:
    """The other end: do what is asked until the pipe ends."""
    does = {RESET: reset, ONCE: once}
    for line in sys.stdin:
        does[line.strip()]()
        print("done", flush=True)
