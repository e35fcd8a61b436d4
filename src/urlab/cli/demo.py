"""`urlab demo`: the half-minute tour."""

import copy
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from urlab.child_process import ServerProcess
from urlab.errors import ConfigError, NoViewport
from urlab_wire.enums import CameraMode
from urlab_wire.pixels import Bytes, PixelFormat

if TYPE_CHECKING:
    from urlab.evaluation.simulation.kinematics import ArmKinematics
    from urlab_client import CameraFrame, URLabArticulation, URLabCameraView, URLabClient

CONTROL_STEPS = 10
BOX = "box-2"
_HOVER, _GRASP, _LIFT = 0.14, 0.0, 0.20
_DOWN_WXYZ = (0.0, 1.0, 0.0, 0.0)
_TCP_OFFSET_M = 0.1034
"""From the hand to where the fingers meet."""
_PANEL = (320, 240)
_MARGIN, _LINE = 8, 18
_FAR_M = 5.0
"""Depth from here on is white, or from the farthest pixel on if that is nearer."""
PANEL = (320, 320)
OVERVIEW_HEIGHT = 520
_MOST_GEOMS = 10_000
_FROM_AFAR = {"lookat": (0.9, 0.75, 0.3), "distance": 3.9, "azimuth": 65.0, "elevation": -17.0}
_CLOSE_UP = {"lookat": (0.36, 0.0, 0.5), "distance": 1.45, "azimuth": 125.0, "elevation": -18.0}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the recording.")] = Path("demo-output"),
) -> None:
    """Start a server on free ports, drive it in direct, puppet and live mode, record and replay, and say how fast.

    Example: [bold]urlab demo --out demo-output[/bold]
    """
    tour(out.resolve())


@dataclass
class Demo:
    """The demo in progress."""

    client: "URLabClient"
    progress: Progress
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    """The summary: mode, what happened, how fast."""
    dark: str | None = None
    """Why the cameras see nothing, if so."""
    pictures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def arm(self) -> "URLabArticulation":
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
    from urlab_client import URLabClient

    console = Console()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise ConfigError(f"--out {out} cannot be made: {refused.strerror}") from refused
    with tempfile.TemporaryDirectory(prefix="urlab-demo-") as folder:
        options = ("--project", folder, "--write-root", str(out))
        with console.status("starting a server"):
            server = ServerProcess("demo", *options)
        with server, Progress(console=console) as progress:
            address, _, port = server.endpoints["step"].rpartition(":")
            console.print(f"server: {server.endpoints['step']}, ready after {server.seconds_to_ready:.1f} s")
            with URLabClient(address, step_port=int(port), step_mode="direct") as client:
                client.discover()
                run = Demo(client, progress)
                _describe(run, console)
                _direct(run)
                run.dark = take_contact_sheet(client, out / "cameras.png")
                _recorded(run, out)
                _puppet(run)
                _live(run)
    _report(run, console, out)


def _describe(run: Demo, console: Console) -> None:
    for name, robot in run.client.articulations.items():
        console.print(
            f"  {name}: {len(robot.joints)} joints, {len(robot.actuators)} actuators, {len(robot.sensors)} sensors"
        )
    console.print(f"  entities: {', '.join(name for name in run.client.entities if '_' not in name)}")


def _direct(run: Demo) -> None:
    """The client decides every control step: the arm picks up the middle box."""
    from urlab.evaluation.embodiments import FRANKA_PANDA
    from urlab.evaluation.simulation.kinematics import Kinematics

    client, box = run.client, run.client.entities[BOX]
    client.reset(keyframe_name="panda_home")
    client.recording.start("pick")
    start = np.array(box.root_pos_w)
    kinematics, base = Kinematics(FRANKA_PANDA).arms[0], client.data.body("panda_link0").xpos.copy()
    advance = run.track("direct: pick up a box", 6 * 50)
    begin, steps_before = time.perf_counter(), client.step_count
    run.snap()
    for height, gripper, seconds in ((_HOVER, 0.04, 1.5), (_GRASP, 0.04, 1.5), (_GRASP, 0.0, 1.0), (_LIFT, 0.0, 2.0)):
        goal = _joints_above(kinematics, run.arm, start - base, height)
        _move(run, goal, gripper, seconds, advance)
        run.snap()
    took, steps = time.perf_counter() - begin, client.step_count - steps_before
    client.recording.stop()
    lifted = float(box.root_pos_w[2] - start[2])
    speed = f"{steps / took:,.0f} steps/s ({steps * 0.002 / took:.1f} x real time)"
    run.rows.append(("direct", f"box lifted {100 * lifted:.1f} cm in {steps} steps", speed))


def _move(run: Demo, goal: NDArray[np.float64], gripper: float, seconds: float, advance: Callable[[int], None]) -> None:
    arm, start = run.arm, run.arm.qpos_array[:7].copy()
    ticks = round(seconds / (CONTROL_STEPS * 0.002))
    for tick in range(1, ticks + 1):
        share = min(1.0, 1.25 * tick / ticks)
        smooth = share * share * (3 - 2 * share)
        arm.ctrl_array[:7] = start + smooth * (goal - start)
        arm.ctrl_array[7] = gripper
        run.client.step(CONTROL_STEPS)
        advance(1)


def _recorded(run: Demo, out: Path) -> None:
    """Save what was recorded, load it again and run it frame by frame."""
    client = run.client
    path = client.recording.save(str(out / "pick.json"))
    session = client.replay.load(str(path))
    status = client.replay.start()
    advance = run.track("replay", status.total_frames)
    begin = time.perf_counter()
    for _ in range(0, status.total_frames, CONTROL_STEPS):
        reply = client.step(CONTROL_STEPS)
        advance(CONTROL_STEPS)
    took = time.perf_counter() - begin
    client.replay.stop()
    shown = f"{session.name}: {reply['replay']['frame'] + 1} of {status.total_frames} frames, saved as {path.name}"
    run.rows.append(("record and replay", shown, f"{status.total_frames / took:,.0f} frames/s"))


def _puppet(run: Demo) -> None:
    """The client simulates with its own copy of the model; the server shows the state."""
    import mujoco

    client = run.client
    client.runtime.set_mode("puppet")
    model, data = client.model, client.data
    mujoco.mj_resetDataKeyframe(model, data, model.key("panda_home").id)
    pushes = 500
    advance = run.track("puppet: the client integrates", pushes)
    begin = time.perf_counter()
    for _ in range(pushes):
        client.step(1)
        advance(1)
    took = time.perf_counter() - begin
    run.rows.append(("puppet", f"{pushes} states pushed", f"{pushes / took:,.0f} pushes/s"))


def _live(run: Demo) -> None:
    """The server runs in real time; the client changes setpoints now and then."""
    client, seconds = run.client, 3.0
    client.runtime.set_mode("live")
    client.reset(keyframe_name="panda_home")
    arm = run.arm
    arm.ctrl_array[:] = client.model.key("panda_home").ctrl[[actuator.id for actuator in arm.actuators.values()]]
    advance, shown = run.track("live: real time", round(seconds * 100)), 0
    begin, sim_begin = time.perf_counter(), float(client.step()["time"])
    now = 0.0
    while now < seconds:
        arm.set_ctrl({"joint1": 0.4 * np.sin(2 * now)})
        time.sleep(0.02)
        sim_now, now = float(client.step()["time"]), time.perf_counter() - begin
        advance(round(100 * now) - shown)
        shown = round(100 * now)
    factor = (sim_now - sim_begin) / now
    run.rows.append(("live", f"{seconds:.0f} s, arm swings", f"{factor:.3f} x real time"))


def _report(run: Demo, console: Console, out: Path) -> None:
    table = Table(title="URLab Headless", title_style="bold")
    for column in ("mode", "what happened", "rate"):
        table.add_column(column)
    for row in run.rows:
        table.add_row(*row)
    console.print(table)
    problem = draw_states(run.client.model, run.pictures, out / "demo.png")
    console.print(f"no picture: {problem}" if problem else f"picture:   {out / 'demo.png'}")
    console.print(f"no cameras: {run.dark}" if run.dark else f"cameras:   {out / 'cameras.png'}")
    console.print(f"recording: {out / 'pick.json'}")
    console.print("next: `urlab serve` in one terminal, examples/01_connect.py in another")
    console.print(_page())


def _page() -> str:
    """How to see it move."""
    from urlab.editor_process import MISSING, is_installed

    return "in a browser: open the address that `urlab serve` prints as web" if is_installed() else MISSING


def _joints_above(
    kinematics: "ArmKinematics", arm: "URLabArticulation", point: NDArray[np.float64], height_m: float
) -> NDArray[np.float64]:
    """Seven joint angles that put the gripper, pointing down, ``height_m`` above a point in the frame of the base."""
    from urlab.evaluation.simulation.kinematics import EePose

    hand = point + np.array([0.0, 0.0, height_m + _TCP_OFFSET_M])
    return kinematics.solve(EePose(hand, np.array(_DOWN_WXYZ)), arm.qpos_array[:7]).joints


def take_contact_sheet(client: "URLabClient", out: Path) -> str | None:
    """Photograph the scene with all its cameras; returns why that cannot be, or None. The modes are put back."""
    cameras = _cameras(client)
    before = {name: view.mode for name, view in cameras.items()}
    rows = {}
    for mode in CameraMode:
        for name in cameras:
            client.runtime.set_camera_mode(name, mode)
        reply = client.step(0, include_cameras=dict.fromkeys(cameras, "sync"))
        if not reply.get("cameras"):
            return "; ".join(reply.get("warnings") or ["the server sent no frames"])
        rows[mode.value] = {name: _picture(view.latest) for name, view in cameras.items() if view.latest}
    for name, mode in before.items():
        client.runtime.set_camera_mode(name, mode)
    _assemble(rows, out)
    return None


def _cameras(client: "URLabClient") -> "dict[str, URLabCameraView]":
    robots = client.articulations.items()
    owned = {f"{prefix}/{name}": view for prefix, robot in robots for name, view in robot.cameras.items()}
    return {**owned, **client.global_cameras}


def _picture(frame: "CameraFrame") -> Bytes:
    """(H, W, 3) RGB."""
    from urlab_client.handles.frame import rgb_picture

    if frame.mode.pixel_format is not PixelFormat.DEPTH_F32:
        return rgb_picture(frame)
    farthest_m = float(frame.pixels[np.isfinite(frame.pixels)].max(initial=0.1))
    return rgb_picture(frame, min(_FAR_M, farthest_m))


def _assemble(rows: dict[str, dict[str, Bytes]], out: Path) -> None:
    from PIL import Image, ImageDraw

    columns = max(len(row) for row in rows.values())
    step_x, step_y = _PANEL[0] + _MARGIN, _PANEL[1] + _LINE + _MARGIN
    sheet = Image.new("RGB", (columns * step_x + _MARGIN, len(rows) * step_y + _MARGIN), "white")
    pen = ImageDraw.Draw(sheet)
    for y, (mode, row) in enumerate(rows.items()):
        for x, (name, picture) in enumerate(row.items()):
            corner = (_MARGIN + x * step_x, _MARGIN + y * step_y)
            pen.text(corner, f"{name}, {mode}", fill="black")
            sheet.paste(Image.fromarray(picture).resize(_PANEL), (corner[0], corner[1] + _LINE))
    sheet.save(out)


def draw_states(model: Any, states: list[dict[str, Any]], out: Path) -> str | None:
    """Draw states ({"qpos": ..., "mocap_pos": ...}) side by side, the last one above them; returns why not, or None."""
    from PIL import Image

    from urlab.cameras import shared_gl

    model = copy.copy(model)
    width = PANEL[0] * len(states)
    model.vis.global_.offwidth, model.vis.global_.offheight = width, max(OVERVIEW_HEIGHT, PANEL[1])
    try:
        overview = shared_gl().run(partial(_draw_all, model, states[-1:], (width, OVERVIEW_HEIGHT), _FROM_AFAR))
        panels = shared_gl().run(partial(_draw_all, model, states, PANEL, _CLOSE_UP))
    except NoViewport as none:
        return f"{none.message}; `urlab doctor` says what to install"
    Image.fromarray(np.concatenate([overview[0], np.concatenate(panels, axis=1)])).save(out)
    return None


def _draw_all(model: Any, states: list[dict[str, Any]], size: tuple[int, int], view: dict[str, Any]) -> list[Bytes]:
    """Pictures (height, width, 3) RGB of some states; for the GL thread."""
    import mujoco

    data, option, camera = mujoco.MjData(model), mujoco.MjvOption(), mujoco.MjvCamera()
    camera.lookat[:] = view["lookat"]
    camera.distance, camera.azimuth, camera.elevation = view["distance"], view["azimuth"], view["elevation"]
    scene, rectangle = mujoco.MjvScene(model, _MOST_GEOMS), mujoco.MjrRect(0, 0, *size)
    context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_150.value)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, context)
    pictures = []
    for state in states:
        for key, values in state.items():
            getattr(data, key)[:] = values
        mujoco.mj_forward(model, data)
        mujoco.mjv_updateScene(model, data, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL.value, scene)
        mujoco.mjr_render(rectangle, scene, context)
        pixels = np.empty((size[1], size[0], 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, rectangle, context)
        pictures.append(pixels[::-1])
    context.free()
    return pictures
