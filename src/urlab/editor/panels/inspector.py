"""The inspector: what the selected actor is and does, live: joints, actuators, sensors, contacts; to drive and push."""

import contextlib
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from html import escape
from typing import Any

import mujoco
import numpy as np
from viser import Icon, uplot

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel
from urlab.editor.panels.place import ActorPlace
from urlab.editor.panels.push import BodyPush
from urlab.editor.scripts.keys import twist_pad
from urlab.editor.server_link import FAILURES
from urlab_client import URLabClient
from urlab_client.types import ContactsResult

_PLOT_S = 10.0
_MOST_SLIDERS = 40
_HINGE, _SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
_ENDLESS_TURN = 3.1416
_ENDLESS_WAY = 5.0
_MOST_ROWS = 20
_NOTHING_SELECTED = "Nothing is selected: click an actor, or choose it under *Scene*."
_ROWS_STYLE = "padding:0 1em 0.5em;font-size:0.85em;font-variant-numeric:tabular-nums;overflow-wrap:anywhere"


class InspectorPanel(Panel):
    """What the selected actor is, and how it is now."""

    title = "Inspect"
    icon = Icon.ADJUSTMENTS
    order = 15

    def build(self) -> None:
        """A heading; the rest comes with a selection."""
        self._heading = self.gui.add_markdown(_NOTHING_SELECTED)
        self._place = ActorPlace(self.page)
        self._folder = self.gui.add_folder(None)
        self._folders: list[Any] = []
        self._inputs: list[Any] = []
        self._live: list[Callable[[ShownWorld], None]] = []
        self._push: BodyPush | None = None
        self._shown: tuple[Any, ...] = ()

    def show_model(self, world: ShownWorld) -> None:  # noqa: ARG002 - for every panel
        """Another model has other ids."""
        self._shown = ()

    def show_status(self, world: ShownWorld) -> None:
        """Live values; everything anew when another actor is selected, or play begins or ends."""
        source = (world.status.control_source or {}) if world.status is not None else {}
        wanted = (world.view.selected, world.view.model, world.view.playing, source.get(world.view.selected or ""))
        if wanted != self._shown:
            self._shown = wanted
            self._write(world, source.get(world.view.selected or ""))
        for refresh in self._live:
            refresh(world)

    def _write(self, world: ShownWorld, source: str | None) -> None:
        self._end_push()
        for folder in self._folders:
            self.page.forget(folder, *self._inputs)
        self._folders, self._inputs, self._live = [], [], []
        actor = world.view.selected if world.view.selected in world.actors else None
        self._place.show(None if world.view.playing else actor)
        if actor is None:
            self._heading.content = _NOTHING_SELECTED
            return
        self._heading.content = f"### {actor}\n\n{_summary(world, actor)}"
        with self._folder:
            self._write_joints(world, actor)
            self._write_actuators(world, actor, source)
            self._write_sensors(world, actor)
            if world.view.playing:
                self._write_twist_pad(actor)
                self._write_push(world, actor)
                self._write_contacts(world, actor)
                self._write_gains(actor)
            self._write_masses(world, actor)

    def close(self) -> None:
        """An edit that waits is not made any more, and nothing is pushed."""
        self._place.close()
        self._end_push()

    def _add_folder(self, label: str, **options: Any) -> Any:
        self._folders.append(self.gui.add_folder(label, **options))
        return self._folders[-1]

    def _acting(self, widget: Any) -> Any:
        self._inputs.append(widget)
        return self.page.acting(widget)

    # -- joints and actuators ---------------------------------------------------------------------------------------

    def _write_joints(self, world: ShownWorld, actor: str) -> None:
        model = world.model
        joints = [
            index
            for index in _of_actor(model.njnt, model.joint, actor)
            if int(model.jnt_type[index]) in (_HINGE, _SLIDE)
        ]
        if not joints:
            return
        folder = self._add_folder("Joints")
        for index in joints[:_MOST_SLIDERS]:
            low, high = _range(model, index)
            address = int(model.jnt_qposadr[index])
            name = model.joint(index).name
            with folder:
                slider = self._acting(
                    self.gui.add_slider(
                        name.removeprefix(f"{actor}_"), min=low, max=high, step=_step(low, high),
                        initial_value=_within(low, high, world.data.qpos[address]),
                    )
                )  # fmt: skip
            slider.on_update(partial(self._set_joint, actor, name))
            self._live.append(partial(self._follow, slider, "qpos", address, low, high))
        self._write_rest(folder, len(joints))

    def _write_rest(self, folder: Any, count: int) -> None:
        if count > _MOST_SLIDERS:
            with folder:
                self.gui.add_markdown(f"and {count - _MOST_SLIDERS} more, which have no sliders here")

    def _set_joint(self, actor: str, joint: str, event: Any) -> None:
        if event.client is None:
            return
        value = float(event.target.value)
        world = self.page.world
        if world is None or not world.view.playing:
            self.page.tell("Joints move while the level plays", "Press Play first.", is_error=True)
            return
        model, qpos = world.model, world.data.qpos
        joints = _of_actor(model.njnt, model.joint, actor)
        numbers: list[float] = []
        for index in joints:
            first = int(model.jnt_qposadr[index])
            numbers += (
                [value] if model.joint(index).name == joint else qpos[first : first + _width(model, index)].tolist()
            )
        self.page.change(f"{joint} = {value:.3f}", lambda client: client.runtime.set_qpos(actor, numbers, by_name=True))

    def _write_actuators(self, world: ShownWorld, actor: str, source: str | None) -> None:
        model = world.model
        actuators = _of_actor(model.nu, model.actuator, actor)
        if not actuators or not world.view.playing:
            return
        folder = self._add_folder("Actuators")
        with folder:
            by_page = self._acting(
                self.gui.add_checkbox(
                    "Drive from this page", source == "ui", hint="Control source ui: the sliders count, not the client."
                )
            )
        by_page.on_update(lambda event: self._set_source(event, actor, bool(by_page.value)))
        for index in actuators[:_MOST_SLIDERS]:
            low, high = _control_range(model, index)
            name = model.actuator(index).name.removeprefix(f"{actor}_")
            with folder:
                slider = self.gui.add_slider(
                    name, min=low, max=high, step=_step(low, high),
                    initial_value=_within(low, high, world.data.ctrl[index]), disabled=True,
                )  # fmt: skip
            if source == "ui":
                self._acting(slider)
                slider.on_update(partial(self._set_control, actor, name))
            else:
                self._live.append(partial(self._follow, slider, "ctrl", index, low, high))
        self._write_rest(folder, len(actuators))

    def _set_source(self, event: Any, actor: str, by_page: bool) -> None:
        if event.client is not None:
            source = "ui" if by_page else "zmq"

            def work(client: URLabClient) -> bool:
                client.runtime.set_control_source(source, articulation=actor)
                return True

            if not self.page.change(f"{actor} follows {source}", work):
                return
            if by_page:
                self._give_back_on_leave(actor)
            else:
                self.page.on_leave.pop(actor, None)

    def _give_back_on_leave(self, actor: str) -> None:
        """A robot that follows sliders of this page follows its client again when the page is gone."""
        self.page.on_leave[actor] = lambda client: client.runtime.set_control_source("zmq", articulation=actor)

    def _set_control(self, actor: str, actuator: str, event: Any) -> None:
        if event.client is not None:
            slider = event.target
            setpoints = self.page.change(
                f"{actuator} = {float(slider.value):.3f}",
                lambda client: client.runtime.set_ui_controls(actor, ctrl_map={actuator: float(slider.value)}),
            )
            if setpoints is not None:
                self._give_back_on_leave(actor)

    def _follow(self, slider: Any, array: str, index: int, low: float, high: float, world: ShownWorld) -> None:
        """Let a slider show a number of the state."""
        self.page.follow(slider, _within(low, high, float(getattr(world.data, array)[index])))

    # -- sensors ----------------------------------------------------------------------------------------------------

    def _write_sensors(self, world: ShownWorld, actor: str) -> None:
        model = world.model
        sensors = _of_actor(model.nsensor, model.sensor, actor)
        if not sensors or not world.view.playing:
            return
        names = {model.sensor(index).name.removeprefix(f"{actor}_"): index for index in sensors}
        folder = self._add_folder("Sensors")
        with folder:
            chosen = self.gui.add_dropdown("Sensor", tuple(names))
            text = self.gui.add_markdown("")
            plot = self.gui.add_uplot(
                (np.zeros(2), np.zeros(2)), (uplot.Series(label="s"), uplot.Series(label="value", stroke="#1c64b4")),
                scales={"x": uplot.Scale(time=False)}, aspect=2.0,
            )  # fmt: skip
        history: deque[tuple[float, float]] = deque(maxlen=200)
        last: list[Any] = [None]

        def refresh(world: ShownWorld) -> None:
            index = names[chosen.value]
            first, size = int(world.model.sensor_adr[index]), int(world.model.sensor_dim[index])
            values = world.data.sensordata[first : first + size]
            now = world.view.sim_time or 0.0
            if last[0] != chosen.value or (history and now < history[-1][0]):
                history.clear()
                last[0] = chosen.value
            text.content = f"`{', '.join(f'{value:.4g}' for value in values)}`"
            if not history or now > history[-1][0]:
                history.append((now, float(values[0]) if size == 1 else float(np.linalg.norm(values))))
            while history and now - history[0][0] > _PLOT_S:
                history.popleft()
            if len(history) > 1:
                times, numbers = np.array(history).T
                plot.data = (times, numbers)

        self._live.append(refresh)

    # -- contacts, masses, driving -----------------------------------------------------------------------------------

    def _write_contacts(self, world: ShownWorld, actor: str) -> None:
        bodies = {world.model.body(body).name for body in world.actors[actor]}
        with self._add_folder("Contacts"):
            text = self.gui.add_html("")

        def refresh(world: ShownWorld) -> None:
            if world.view.playing:
                with contextlib.suppress(*FAILURES):  # the level was stopped since the view was read
                    text.content = contacts_html(self.page.editor.contacts(), bodies)

        self._live.append(refresh)

    def _write_masses(self, world: ShownWorld, actor: str) -> None:
        model, bodies = world.model, list(world.actors[actor])
        if len(bodies) < 2:
            return  # the heading has it
        with self._add_folder("Masses", expand_by_default=False):
            self.gui.add_html(
                masses_html({_short(model.body(one).name, actor): model.body_mass[one] for one in bodies})
            )

    def _write_twist_pad(self, actor: str) -> None:
        if self.page.read(lambda client: actor in client.articulations):
            with self._add_folder("Drive", expand_by_default=False):
                self.gui.add_html(twist_pad())

    def _write_push(self, world: ShownWorld, actor: str) -> None:
        model = world.model
        bodies = [model.body(one).name for one in world.actors[actor] if model.body_weldid[one] != 0]
        if bodies:
            with self._add_folder("Push", expand_by_default=False):
                self._push = BodyPush(self.page, bodies)
            self._inputs += self._push.inputs

    def _end_push(self) -> None:
        if self._push is not None:
            self._push.release()
            self._push = None

    # -- gains ------------------------------------------------------------------------------------------------------

    def _write_gains(self, actor: str) -> None:
        params = self._gains(actor)
        if params is None:
            return
        folder = self._add_folder("Gains", expand_by_default=False)
        for kind in ("kp", "kv"):
            for joint, value in dict(params.get(kind, {})).items():
                with folder:
                    number = self._acting(self.gui.add_number(f"{kind} {joint}", float(value), step=0.1))
                number.on_update(partial(self._set_gain, actor, kind, joint))

    def _gains(self, actor: str) -> dict[str, Any] | None:
        """The params in force, also those set from Python, of a pd controller. Observers may not ask for them."""
        try:
            return self.page.editor.link.change(lambda client: _pd_params(client, actor))
        except FAILURES as failed:
            self.page.editor.note(str(failed), is_error=True)
            return None

    def _set_gain(self, actor: str, kind: str, joint: str, event: Any) -> None:
        if event.client is not None:
            value = float(event.target.value)
            self.page.change(
                f"{kind} of {joint} = {value:g}",
                lambda client: _configure(client, actor, {kind: {joint: value}}),
            )


def contacts_html(found: ContactsResult, bodies: Collection[str]) -> str:
    """The contacts that these bodies have a part in: what touches what, and with which force."""
    rows = [
        f"<div>{escape(one.geom1 or one.body1)} \u2013 {escape(one.geom2 or one.body2)}"
        f'<span style="float:right">{math.hypot(*one.force[:3]):.3g} N</span></div>'
        for one in found.contacts
        if one.body1 in bodies or one.body2 in bodies
    ]
    more = f"<div>and {len(rows) - _MOST_ROWS} more</div>" if len(rows) > _MOST_ROWS else ""
    more += f"<div>looked at {len(found.contacts)} of {found.n_contacts} contacts</div>" if found.truncated else ""
    return f'<div style="{_ROWS_STYLE}">{"".join(rows[:_MOST_ROWS]) or "touches nothing"}{more}</div>'


def masses_html(masses: Mapping[str, float]) -> str:
    """Each body's mass, the heaviest first, and their sum."""
    ordered = sorted(masses.items(), key=lambda one: -one[1])
    rows = (
        f'<div>{escape(name)}<span style="float:right">{mass:.3g} kg</span></div>'
        for name, mass in (*ordered, ("all", sum(masses.values())))
    )
    return f'<div style="{_ROWS_STYLE}">{"".join(rows)}</div>'


def _short(name: str, actor: str) -> str:
    return name.removeprefix(f"{actor}_") or name


def _configure(client: URLabClient, actor: str, params: dict[str, dict[str, float]]) -> None:
    controller = client.articulations[actor].controller
    if controller is None:
        raise ValueError(f"{actor} has no controller")
    controller.configure(**params)


def _pd_params(client: URLabClient, actor: str) -> dict[str, Any] | None:
    robot = client.articulations.get(actor)
    controller = None if robot is None else robot.controller
    return None if controller is None or controller.kind != "pd" else dict(controller.refresh())


def _of_actor(count: int, by_id: Any, actor: str) -> list[int]:
    prefix = f"{actor}_"
    return [index for index in range(count) if by_id(index).name.startswith(prefix)]


def _width(model: Any, joint: int) -> int:
    return {0: 7, 1: 4}.get(int(model.jnt_type[joint]), 1)


def _range(model: Any, joint: int) -> tuple[float, float]:
    if model.jnt_limited[joint]:
        low, high = model.jnt_range[joint].tolist()
        return low, high
    reach = _ENDLESS_TURN if int(model.jnt_type[joint]) == _HINGE else _ENDLESS_WAY
    return -reach, reach


def _control_range(model: Any, actuator: int) -> tuple[float, float]:
    low, high = model.actuator_ctrlrange[actuator].tolist()
    return (low, high) if model.actuator_ctrllimited[actuator] and high > low else (-1.0, 1.0)


def _step(low: float, high: float) -> float:
    """A step of a slider: a power of ten, at least a thousand to the whole way unless that is very short."""
    return float(max(1e-4, 10.0 ** math.floor(math.log10(max(high - low, 0.1) / 1000))))


def _within(low: float, high: float, value: float) -> float:
    """A value for a slider, with as many digits as its step has, so that the numbers beside it are short and still."""
    digits = round(-math.log10(_step(low, high)))
    return float(min(high, max(low, round(float(value), digits) + 0.0)))


def _summary(world: ShownWorld, actor: str) -> str:
    model, bodies = world.model, list(world.actors[actor])
    mass = float(model.body_mass[bodies].sum()) if bodies else 0.0
    joints, actuators = _of_actor(model.njnt, model.joint, actor), _of_actor(model.nu, model.actuator, actor)
    counts = (("body", "bodies", len(bodies)), ("joint", "joints", len(joints)),
              ("actuator", "actuators", len(actuators)))  # fmt: skip
    words = [f"{count} {one if count == 1 else many}" for one, many, count in counts if count]
    return ", ".join([*words, f"{mass:.3g} kg"])
