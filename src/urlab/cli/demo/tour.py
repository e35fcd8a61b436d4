"""A server in its own process, an arm that picks up a box, and every way of stepping."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from urlab.child_process import ServerProcess
from urlab.cli.demo.contact_sheet import take_contact_sheet
from urlab.cli.demo.grasp import Reach
from urlab.cli.demo.picture import draw_states
from urlab.errors import ConfigError
from urlab_client import URLabArticulation, URLabClient

CONTROL_STEPS = 10
BOX = "box-2"
_HOVER, _GRASP, _LIFT = 0.14, 0.0, 0.20


@dataclass
class Row:
    """One line of the summary."""

    what: str
    result: str
    rate: str = ""


@dataclass
class Show:
    """The demo in progress."""

    client: URLabClient
    progress: Progress
    rows: list[Row] = field(default_factory=list)
    dark: str | None = None
    """Why the cameras see nothing, if so."""
    pictures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def arm(self) -> URLabArticulation:
        """The robot that does the work."""
        return self.client.articulations["panda"]

    def snap(self) -> None:
        """Keep the state for the picture."""
        data = self.client.data
        self.pictures.append({"qpos": data.qpos.copy(), "mocap_pos": data.mocap_pos.copy()})

    def track(self, title: str, total: int) -> Callable[[int], None]:
        """A progress bar; call what comes back with how much was done."""
        task = self.progress.add_task(title, total=total)
        return lambda amount: self.progress.update(task, advance=amount)


def tour(out: Path) -> None:
    """Run the whole demo; the picture and the recording go to ``out``."""
    console = Console()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise ConfigError(f"--out {out} cannot be made: {refused.strerror}") from refused
    with TemporaryDirectory(prefix="urlab-demo-") as folder:
        options = ("--project", folder, "--write-root", str(out))
        with console.status("starting a server"):
            server = ServerProcess("demo", *options)
        with server, Progress(console=console) as progress:
            address, _, port = server.endpoints["step"].rpartition(":")
            console.print(f"server: {server.endpoints['step']}, ready after {server.seconds_to_ready:.1f} s")
            with URLabClient(address, step_port=int(port), step_mode="direct") as client:
                client.discover()
                show = Show(client, progress)
                _describe(show, console)
                _play(show, out)
    _report(show, console, out)


def _play(show: Show, out: Path) -> None:
    _direct(show)
    show.dark = take_contact_sheet(show.client, out / "cameras.png")
    _recorded(show, out)
    _puppet(show)
    _live(show)


def _describe(show: Show, console: Console) -> None:
    for name, robot in show.client.articulations.items():
        console.print(
            f"  {name}: {len(robot.joints)} joints, {len(robot.actuators)} actuators, {len(robot.sensors)} sensors"
        )
    console.print(f"  entities: {', '.join(name for name in show.client.entities if '_' not in name)}")


def _direct(show: Show) -> None:
    """The client decides every control step: the arm picks up the middle box."""
    client, box = show.client, show.client.entities[BOX]
    client.reset(keyframe_name="panda_home")
    client.recording.start("pick")
    start = np.array(box.root_pos_w)
    reach = Reach(client.model, client.data, show.arm)
    advance = show.track("direct: pick up a box", 6 * 50)
    begin, steps_before = time.perf_counter(), client.step_count
    show.snap()
    for height, gripper, seconds in ((_HOVER, 0.04, 1.5), (_GRASP, 0.04, 1.5), (_GRASP, 0.0, 1.0), (_LIFT, 0.0, 2.0)):
        goal = reach.joints_above(start, height)
        _move(show, goal, gripper, seconds, advance)
        show.snap()
    took, steps = time.perf_counter() - begin, client.step_count - steps_before
    client.recording.stop()
    lifted = float(box.root_pos_w[2] - start[2])
    speed = f"{steps / took:,.0f} steps/s ({steps * 0.002 / took:.1f} x real time)"
    show.rows.append(Row("direct", f"box lifted {100 * lifted:.1f} cm in {steps} steps", speed))


def _move(
    show: Show, goal: NDArray[np.float64], gripper: float, seconds: float, advance: Callable[[int], None]
) -> None:
    arm, start = show.arm, show.arm.qpos_array[:7].copy()
    ticks = round(seconds / (CONTROL_STEPS * 0.002))
    for tick in range(1, ticks + 1):
        share = min(1.0, 1.25 * tick / ticks)
        smooth = share * share * (3 - 2 * share)
        arm.ctrl_array[:7] = start + smooth * (goal - start)
        arm.ctrl_array[7] = gripper
        show.client.step(CONTROL_STEPS)
        advance(1)


def _recorded(show: Show, out: Path) -> None:
    """Save what was recorded, load it again and show it frame by frame."""
    client = show.client
    path = client.recording.save(str(out / "pick.json"))
    session = client.replay.load(str(path))
    status = client.replay.start()
    advance = show.track("replay", status.total_frames)
    begin = time.perf_counter()
    for _ in range(0, status.total_frames, CONTROL_STEPS):
        reply = client.step(CONTROL_STEPS)
        advance(CONTROL_STEPS)
    took = time.perf_counter() - begin
    client.replay.stop()
    shown = f"{session.name}: {reply['replay']['frame'] + 1} of {status.total_frames} frames, saved as {path.name}"
    show.rows.append(Row("record and replay", shown, f"{status.total_frames / took:,.0f} frames/s"))


def _puppet(show: Show) -> None:
    """The client simulates with its own copy of the model; the server shows the state."""
    client = show.client
    client.runtime.set_mode("puppet")
    model, data = client.model, client.data
    mujoco.mj_resetDataKeyframe(model, data, model.key("panda_home").id)
    pushes = 500
    advance = show.track("puppet: the client integrates", pushes)
    begin = time.perf_counter()
    for _ in range(pushes):
        client.step(1)
        advance(1)
    took = time.perf_counter() - begin
    show.rows.append(Row("puppet", f"{pushes} states pushed", f"{pushes / took:,.0f} pushes/s"))


def _live(show: Show) -> None:
    """The server runs in real time; the client changes setpoints now and then."""
    client, seconds = show.client, 3.0
    client.runtime.set_mode("live")
    client.reset(keyframe_name="panda_home")
    arm = show.arm
    arm.ctrl_array[:] = _home_ctrl(show)
    advance, shown = show.track("live: real time", round(seconds * 100)), 0
    begin, sim_begin = time.perf_counter(), float(client.step()["time"])
    now = 0.0
    while now < seconds:
        arm.set_ctrl({"joint1": 0.4 * np.sin(2 * now)})
        time.sleep(0.02)
        sim_now, now = float(client.step()["time"]), time.perf_counter() - begin
        advance(round(100 * now) - shown)
        shown = round(100 * now)
    factor = (sim_now - sim_begin) / now
    show.rows.append(Row("live", f"{seconds:.0f} s, arm swings", f"{factor:.3f} x real time"))


def _home_ctrl(show: Show) -> NDArray[np.float64]:
    """The arm's setpoints in its home keyframe."""
    model = show.client.model
    ids = [actuator.id for actuator in show.arm.actuators.values()]
    return np.array(model.key("panda_home").ctrl[ids])


def _report(show: Show, console: Console, out: Path) -> None:
    table = Table(title="URLab Headless", title_style="bold")
    for column in ("mode", "what happened", "rate"):
        table.add_column(column)
    for row in show.rows:
        table.add_row(row.what, row.result, row.rate)
    console.print(table)
    model = show.client.model
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    problem = draw_states(buffer.tobytes(), show.pictures, out / "demo.png")
    console.print(f"no picture: {problem}" if problem else f"picture:   {out / 'demo.png'}")
    console.print(f"no cameras: {show.dark}" if show.dark else f"cameras:   {out / 'cameras.png'}")
    console.print(f"recording: {out / 'pick.json'}")
    console.print("next: `urlab serve` in one terminal, examples/01_connect.py in another")
