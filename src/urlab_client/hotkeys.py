"""Hotkeys of a view of the simulation, as data, and what each does through a client.

The one table of keys: a terminal (`urlab watch --keys`) uses it, and every other view can list and use it.

    >>> from urlab_client.hotkeys import HOTKEYS
    >>> {hotkey.key: hotkey.action for hotkey in HOTKEYS}["space"]
    'pause'
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from urlab_client.enums import StepMode

if TYPE_CHECKING:
    from urlab_client.client import URLabClient
    from urlab_client.namespaces.viewport import ViewportOverlays

SPEED_FACTOR = 2.0
"""What "faster" and "slower" multiply and divide by."""

DRIVE_M_S = 0.5
TURN_RAD_S = 0.8


@dataclass(frozen=True, slots=True)
class Hotkey:
    """One key. ``key`` is the character, or ``space`` or ``tab``; ``argument`` is for the action."""

    key: str
    action: str
    help: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class TwistKey:
    """One key that drives: forward and to the left in shares of `DRIVE_M_S`, turning left in shares of `TURN_RAD_S`."""

    key: str
    help: str
    forward: float = 0.0
    left: float = 0.0
    turn: float = 0.0


HOTKEYS = (
    Hotkey("space", "pause", "pause, or go on"),
    Hotkey(".", "step", "one step", "1"),
    Hotkey(">", "step", "ten steps", "10"),
    Hotkey("r", "reset", "reset to the start"),
    Hotkey("+", "faster", "twice as fast, up to real time"),
    Hotkey("-", "slower", "half as fast"),
    Hotkey("tab", "next_robot", "drive the next robot"),
    Hotkey("c", "overlay", "contact points in the viewport", "contacts"),
    Hotkey("f", "overlay", "contact forces", "contact_forces"),
    Hotkey("j", "overlay", "joints", "joints"),
    Hotkey("m", "overlay", "centres of mass", "com"),
    Hotkey("b", "overlay", "frames of the bodies", "frames"),
    Hotkey("i", "overlay", "inertia boxes", "inertia"),
    Hotkey("t", "overlay", "tendons", "tendons"),
    Hotkey("n", "overlay", "names", "names"),
    Hotkey("o", "overlay", "robots half transparent", "transparent"),
)

TWIST_KEYS = (
    TwistKey("w", "forward", forward=1.0),
    TwistKey("s", "backward", forward=-1.0),
    TwistKey("a", "to the left", left=1.0),
    TwistKey("d", "to the right", left=-1.0),
    TwistKey("q", "turn left", turn=1.0),
    TwistKey("e", "turn right", turn=-1.0),
    TwistKey("x", "stop"),
)


def hotkey_help() -> list[str]:
    """``key: what it does`` of every key, in the order of the table."""
    return [f"{one.key}: {one.help}" for one in (*HOTKEYS, *TWIST_KEYS)]


class Hotkeys:
    """Does what keys say, through a client that may change the world (``operator=True``). For one thread.

    ``robot`` is what the twist keys drive, by its prefix, and may be set; while it is None, they drive the first one.
    """

    def __init__(self, client: "URLabClient", robot: str | None = None) -> None:
        self._client = client
        self.robot = robot
        self._switched_to_direct = False
        self._hotkeys = {one.key: one for one in HOTKEYS}
        self._twist_keys = {one.key: one for one in TWIST_KEYS}
        self._actions: dict[str, Callable[[str], str]] = {
            "pause": self._pause,
            "step": self._step,
            "reset": self._reset,
            "faster": self._faster,
            "slower": self._slower,
            "next_robot": self._next_robot,
            "overlay": self._toggle_overlay,
        }

    def press(self, key: str) -> str | None:
        """Do it, and say in a sentence what was done; None for a key that means nothing."""
        if key in self._twist_keys:
            return self._drive(self._twist_keys[key])
        hotkey = self._hotkeys.get(key)
        return None if hotkey is None else self._actions[hotkey.action](hotkey.argument)

    def _pause(self, _argument: str) -> str:
        status = self._client.sim.status()
        if self._switched_to_direct and status.mode == StepMode.DIRECT:
            self._client.runtime.set_mode(StepMode.LIVE)
            self._switched_to_direct = False
            self._client.runtime.set_paused(False)
            return "goes on"
        if status.mode != StepMode.LIVE:
            return f"nothing to pause: in {status.mode} mode time moves when its client steps"
        paused = self._client.runtime.set_paused(not status.paused)
        return "paused" if paused else "goes on"

    def _step(self, argument: str) -> str:
        status = self._client.sim.status()
        if status.mode == StepMode.PUPPET:
            return "no step: in puppet mode its client simulates"
        if status.mode == StepMode.LIVE:
            self._client.runtime.set_paused(True)
            self._client.runtime.set_mode(StepMode.DIRECT)
            self._switched_to_direct = True
        reply = self._client.step(int(argument))
        return f"stepped to {reply['time']:.4f} s"

    def _reset(self, _argument: str) -> str:
        self._client.reset()
        return "reset"

    def _faster(self, _argument: str) -> str:
        return self._scale_speed(SPEED_FACTOR)

    def _slower(self, _argument: str) -> str:
        return self._scale_speed(1.0 / SPEED_FACTOR)

    def _scale_speed(self, factor: float) -> str:
        percent = self._client.sim.status().speed_percent or 100.0
        return f"{self._client.runtime.set_sim_speed(percent * factor):g} % of real time"

    def _toggle_overlay(self, name: str) -> str:
        wanted: ViewportOverlays = {name: not self._client.viewport.set_overlays()[name]}  # type: ignore[misc]
        return f"{name} in the viewport: {'on' if self._client.viewport.set_overlays(**wanted)[name] else 'off'}"

    def _next_robot(self, _argument: str) -> str:
        robots = list(self._client.articulations)
        if not robots:
            return "there is no robot to drive"
        at = robots.index(self.robot) + 1 if self.robot in robots else 0
        self.robot = robots[at % len(robots)]
        return f"driving {self.robot}"

    def _drive(self, key: TwistKey) -> str:
        if self.robot is None:
            found = self._next_robot("")
            if self.robot is None:
                return found
        linear = (key.forward * DRIVE_M_S, key.left * DRIVE_M_S, 0.0)
        self._client.runtime.set_twist(self.robot, linear=linear, angular=(0.0, 0.0, key.turn * TURN_RAD_S))
        return f"{self.robot}: {key.help}"
