"""The play bar: begin and stop, pause, step, reset, speed, mode; what the simulation says of itself."""

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from viser import Icon

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel
from urlab.editor.scripts.appearance import texts_html
from urlab_client import URLabClient
from urlab_client.enums import PIEState, StepMode
from urlab_client.hotkeys import Hotkeys
from urlab_client.types import PIEStatus

if TYPE_CHECKING:
    from urlab.editor.page import Page

_MODES = tuple(mode.value for mode in StepMode if mode is not StepMode.AUTO)


class PlayBar(Panel):
    """Above the tabs, always in sight."""

    order = 0

    def build(self) -> None:
        """The line of figures, then two rows of buttons, speed and mode."""
        self._figures = self.gui.add_html("")
        page = self.page
        self._play = page.acting(self.gui.add_button_group("Level", ("Play", "Stop", "Reset")))
        self._play.on_click(lambda _: self._press(self._play.value))
        self._run = page.acting(self.gui.add_button_group("Time", ("Pause", "Step", "10 steps")))
        self._run.on_click(lambda _: self._press(self._run.value))
        self._error = self.gui.add_html("", visible=False)
        self._texts = self.gui.add_html(texts_html({}))
        self._failed: tuple[str, str] | None = None
        """Why the level could not be played, and the model that was shown when that was first told."""

    def _press(self, word: str) -> None:
        actions: dict[str, tuple[str, Any]] = {
            "Play": ("begin to play", _begin),
            "Stop": ("stop playing", lambda client: client.sim.stop()),
            "Reset": ("reset", lambda client: client.reset()),
            "Pause": ("pause or go on", lambda client: self._hotkeys(client).press("space")),
            "Step": ("one step", lambda client: self._hotkeys(client).press(".")),
            "10 steps": ("ten steps", lambda client: self._hotkeys(client).press(">")),
        }
        what, work = actions[word]
        said = self.page.change(what, work)
        if isinstance(said, str):
            self.page.editor.note(said)

    def _hotkeys(self, client: URLabClient) -> Hotkeys:
        return self.page.editor.hotkeys(client)

    def _without_old_error(self, world: ShownWorld, status: PIEStatus) -> PIEStatus:
        """The server says why it could not play until it plays again; here only until the level is another."""
        if status.state is not PIEState.COMPILE_FAILED:
            self._failed = None
            return status
        if self._failed is None or self._failed[0] != status.compile_error:
            self._failed = (status.compile_error, world.view.model)
        is_old = self._failed[1] != world.view.model
        return replace(status, state=PIEState.OFF, compile_error="") if is_old else status

    def show_status(self, world: ShownWorld) -> None:
        """State, time, real-time factor; overlay texts."""
        self._texts.content = texts_html(world.view.texts)
        status = world.status
        if status is None:
            return
        status = self._without_old_error(world, status)
        state = {PIEState.READY: "playing", PIEState.OFF: "editing"}.get(status.state, status.state.value)
        if status.state is PIEState.READY and status.paused:
            state = "paused"
        words = [f"<b>{escape(status.level or '')}</b>", state.replace("_", " ")]
        if status.state is PIEState.READY:
            words.append(f"{status.sim_time or 0:.2f} s")
            words += [] if status.paused else [f"{world.realtime_factor:.2f} x real time"]
            if status.mode == StepMode.LIVE:
                words.append(f"live at {status.speed_percent:g} %")
            else:  # its client steps, and so is as quick as this
                words += [str(status.mode), f"{world.realtime_factor / world.model.opt.timestep:,.0f} steps/s"]
        marks = f'id="urlab-status" data-state="{state}" data-urlab-page="{self.page.key}"'
        marks += f' data-dark="{self.page.chosen_colour}"'
        style = "padding:0.2em 1em;font-variant-numeric:tabular-nums;overflow-wrap:anywhere"
        self._figures.content = f'<div {marks} style="{style}">{" · ".join(words)}</div>'
        problem = _problem(world, status)
        self._error.visible = bool(problem)
        if problem:
            self._error.content = problem


class SpeedSlider:
    """The pace of live physics and of a replay, which have one."""

    def __init__(self, page: "Page") -> None:
        self._page = page
        self._slider = page.acting(page.gui.add_slider("Speed %", min=5, max=100, step=5, initial_value=100))
        self._slider.on_update(self._change)

    def show(self, status: PIEStatus | None) -> None:
        """The speed in force."""
        if status is not None and status.speed_percent is not None:
            self._page.follow(self._slider, float(min(100.0, max(5.0, status.speed_percent))))

    def _change(self, event: Any) -> None:
        if event.client is not None:
            self._page.change("set the speed", lambda client: client.runtime.set_sim_speed(float(self._slider.value)))


class PlayPanel(Panel):
    """Speed, mode, keyframes, saved states."""

    title = "Play"
    icon = Icon.PLAYER_PLAY
    order = 20

    def build(self) -> None:
        """Speed and mode, keyframes, states."""
        page, gui = self.page, self.gui
        self._speed = SpeedSlider(page)
        self._mode = page.acting(gui.add_dropdown("Mode", _MODES, initial_value="live"))
        self._mode.on_update(self._change_mode)
        with gui.add_folder("Keyframes"):
            self._keyframe = page.acting(gui.add_dropdown("Keyframe", ("(start)",)))
            page.button("Reset to it", "reset to a keyframe", self._reset_to, icon=Icon.PLAYER_SKIP_BACK)
        with gui.add_folder("States"):
            self._state_name = page.acting(gui.add_text("Name", "state-1"))
            page.button("Save state", "save a state", self._save, icon=Icon.DEVICE_FLOPPY)
            self._states = page.acting(gui.add_dropdown("Saved", ("(none)",)))
            page.button("Restore state", "restore a state", self._restore, icon=Icon.ARROW_BACK_UP)

    def _change_mode(self, event: Any) -> None:
        if event.client is not None:
            self.page.change(f"mode {self._mode.value}", lambda client: client.runtime.set_mode(self._mode.value))

    def _reset_to(self, client: URLabClient) -> None:
        name = self._keyframe.value
        if name == "(start)":
            client.reset()
        else:
            client.reset(keyframe_name=name)

    def _save(self, client: URLabClient) -> None:
        client.runtime.save_state(self._state_name.value or None)
        self._list_states(client)

    def _restore(self, client: URLabClient) -> None:
        client.runtime.restore_state(self._states.value)

    def _list_states(self, client: URLabClient) -> None:
        names = tuple(one.name for one in client.runtime.list_states())
        self._states.options = names or ("(none)",)

    def show_model(self, world: ShownWorld) -> None:
        """Keyframes and states are those of the running scene."""
        if not world.view.playing:
            return
        names = tuple(one.name for one in self.page.read(lambda client: client.runtime.list_keyframes()) or ())
        self._keyframe.options = ("(start)", *dict.fromkeys(names))
        self.page.read(self._list_states)

    def show_status(self, world: ShownWorld) -> None:
        """Speed and mode in force."""
        status = world.status
        self._speed.show(status)
        if status is not None and status.mode in _MODES:
            self.page.follow(self._mode, status.mode)


def _problem(world: ShownWorld, status: PIEStatus) -> str:
    """Why nothing new is shown, as HTML; empty where all is well."""
    if status.state is PIEState.COMPILE_FAILED or (world.problem and not world.view.model):
        title, text = "This level does not compile", status.compile_error or world.problem
    elif world.problem:
        title, text = "The server does not say what there is to show", world.problem
    else:
        title, text = "The physics failed", status.physics_error
    if not text:
        return ""
    style = "margin:0.5em 1em;padding:0.5em;border-left:4px solid #c22;overflow-wrap:anywhere;white-space:pre-line"
    return f'<div id="urlab-problem" style="{style}"><b>{title}.</b>\n{escape(text)}</div>'


def _begin(client: URLabClient) -> None:
    client.sim.start()
