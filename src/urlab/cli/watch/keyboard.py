"""Keys that are pressed in the terminal where `urlab watch --keys` runs, and what they do."""

import os
import select
import sys
import termios
import tty
from typing import Self

from urlab.cli.watch.server import WatchedAddress
from urlab_client import URLabClient, URLabRPCError
from urlab_client.hotkeys import Hotkeys, hotkey_help

_NAMES = {" ": "space", "\t": "tab"}
_ANSWER_LIMIT_MS = 2000
_READ_AT_ONCE = 64


class Keyboard:
    """Reads keys one by one while it is entered, without waiting; the terminal is as before afterwards.

    What changes the world goes through an operator session, which takes nothing over from the client that drives.
    """

    def __init__(self, where: WatchedAddress, robot: str | None) -> None:
        self._where = where
        self._robot = robot
        self._client: URLabClient | None = None
        self._hotkeys: Hotkeys | None = None
        self.message = "keys: ? lists them"
        """What the last key did."""

    def __enter__(self) -> Self:
        self._terminal = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._terminal)
        tty.setcbreak(self._terminal)
        return self

    def __exit__(self, *failure: object) -> None:
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)
        if self._client is not None:
            self._client.close()

    def tend(self) -> None:
        """Do what the keys say that were pressed since the last time."""
        for key in self._pressed():
            self.message = " | ".join(hotkey_help()) if key == "?" else self._press(key)

    def _pressed(self) -> list[str]:
        readable, _, _ = select.select([self._terminal], [], [], 0)
        text = os.read(self._terminal, _READ_AT_ONCE).decode(errors="ignore") if readable else ""
        return [] if text.startswith("\x1b") else [_NAMES.get(one, one) for one in text]

    def _press(self, key: str) -> str:
        try:
            return self._connected().press(key) or f"{key!r} does nothing; ? lists the keys"
        except URLabRPCError as refused:
            self._forget()
            return refused.message

    def _connected(self) -> Hotkeys:
        if self._hotkeys is None:
            self._client = URLabClient(
                self._where.address, step_port=self._where.step_port, operator=True, local_model=False,
                mujoco_version_check=False, camera_streams=False, rcv_timeout_ms=_ANSWER_LIMIT_MS,
            )  # fmt: skip
            self._client.discover()
            self._hotkeys = Hotkeys(self._client, self._robot)
        return self._hotkeys

    def _forget(self) -> None:
        """The next key says hello again: the scene or the server may be another one."""
        if self._client is not None:
            self._client.close()
        self._client = self._hotkeys = None
