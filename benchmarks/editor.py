"""What the browser editor costs a server: not opened, with one page, with ten that receive everything; large scenes.

The pages are programs that speak viser's protocol and draw nothing: software drawing would take both cores. How long a
large scene takes to be seen is looked at in Chromium, where there is one.
"""

import base64
import contextlib
import io
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
import trimesh
from PIL import Image

from benchmarks.measuring import Plan, Rounds, SampleCounts, Subject, Tick, a_core_each, bar
from benchmarks.processes import PipeChild, Server, child_module, connect
from benchmarks.reporting import Panel, PanelBar, Report, Table
from benchmarks.scenes import scene_targets
from tests.browser import Browser, Page, find_browser
from tests.editor_page import FLAGS

FULL = Plan(("arm",), 30, SampleCounts(5000, 20, 100, 5), watch_s=10.0)
QUICK = Plan(("arm",), 3, SampleCounts(100, 10, 50, 5), watch_s=2.0, quick=True)

MAX_CLOSED, MAX_OPEN, MAX_CORES, MIN_RATE_HZ, MAX_DELIVERY_S, MAX_DRAWN_S = 1.01, 1.05, 1.0, 20.0, 3.0, 10.0
MANY = 10
_SWINGS = 11
_BODIES = 1000
_MESHES, _MESH_MB, _APART_M = 15, 2.1, 0.8
_WINDOW, _CAMERA_M, _FOV = (1280, 720), (-15.0, 3.0, 1.0), 70.0
_SEEN_AT = slice(260, 380), slice(0, 870)
"""From there all of the meshes are seen side by side in these rows and columns, left of the panels."""
_DRAWN_LIMIT_S = 90.0
_NO_WEB, _NOT_OPENED = "no editor", "not opened"
_BEFORE, _OPEN, _AFTER = "before a page", "one page", "after it"
_SETTLE_S, _SETTLE_PAGE_S = 2.0, 0.6
"""Panels are made for each page; pictures of models are drawn once."""
_NO_CONTACTS = '<default><geom contype="0" conaffinity="0"/></default>'


def measure(plan: Plan, tick: Tick) -> Report:
    """Steps of a direct client in turns, without and with a page; then ten pages of a live scene are watched."""
    tick("steps, page not opened")
    closed = _measure_closed(plan)
    tick("steps, one page")
    opened = _measure_open(plan)
    tick(f"{MANY} pages")
    many = _watch(plan, MANY, swings_mjcf())
    tick(f"{_BODIES} bodies")
    bodies = _watch(plan, 1, bodies_mjcf(_BODIES))
    tick("large meshes")
    meshes = 2 if plan.quick else _MESHES
    first_s, next_s = _deliver(meshes)
    tick("large meshes in Chromium")
    drawn = _draw(meshes)
    timings = {name: rounds.timing(name) for rounds in (closed, opened) for name in rounds.p50_us}
    closed_ratio = _ratio(closed, _NOT_OPENED, _NO_WEB)
    open_ratio = _ratio(opened, _OPEN, _BEFORE, _AFTER)
    control = _ratio(opened, _AFTER, _BEFORE)
    return Report(
        title="What the browser editor costs",
        data={
            "steps": timings,
            "closed_ratio": closed_ratio,
            "open_ratio": open_ratio,
            "after_over_before": control,
            "many": many,
            "bodies": bodies,
            "delivery_s": {"first": first_s, "next": next_s},
            "drawn_s": drawn,
        },
        tables=[
            Table(
                "p50 / p99 of a step over ZeroMQ in us; pairs take turns",
                ("", "step"),
                [(name, one.pair) for name, one in timings.items()],
            ),
            Table(
                "pages of a scene that plays live",
                ("", "of a core", "updates a second", "real-time factor"),
                [
                    (name, f"{one['cores']:.2f}", f"{one['rate_hz']:.0f}", f"{one['realtime']:.4f}")
                    for name, one in ((f"{MANY} pages", many), (f"one page, {_BODIES} bodies", bodies))
                ],
            ),
            Table(
                f"{meshes * _MESH_MB:.0f} MB of meshes, until a page has them",
                ("", "s"),
                [("the first page, which starts the editor", f"{first_s:.1f}"), ("the next one", f"{next_s:.2f}")],
            ),
            Table(
                f"{meshes * _MESH_MB:.0f} MB of meshes, until Chromium shows them, drawn in software",
                ("", "s"),
                [(name, f"{seconds:.1f}") for name, seconds in drawn.items()] or [("there is no Chromium here", "")],
            ),
        ],
        bars=[
            bar("step, page not opened / no editor", closed_ratio, at_most=MAX_CLOSED),
            bar("step, one page / none", open_ratio, at_most=MAX_OPEN, note=f"after / before it {control:.2f}"),
            bar(f"server and editor with {MANY} pages, of a core", many["cores"], at_most=MAX_CORES),
            bar(f"updates a second that each of {MANY} pages gets", many["rate_hz"], at_least=MIN_RATE_HZ),
            bar(f"updates a second of {_BODIES} bodies", bodies["rate_hz"], at_least=MIN_RATE_HZ),
            bar("large meshes, until the first page has them, s", first_s, at_most=MAX_DELIVERY_S),
            bar("large meshes, until the next page has them, s", next_s, at_most=MAX_DELIVERY_S),
            *(
                bar(f"large meshes, until Chromium shows them, {name}, s", seconds, at_most=MAX_DRAWN_S)
                for name, seconds in drawn.items()
            ),
        ],
        panels=[
            Panel("step", "us", [PanelBar(name, [one.p50_us], one.pair, one.p99_us) for name, one in timings.items()])
        ],
    )


def _ratio(rounds: Rounds, one: str, *others: str) -> float:
    """The median over all rounds of how their medians compare: a machine changes its pace from minute to minute."""
    beside: list[float] = np.mean([rounds.p50_us[other] for other in others], axis=0).tolist()
    return statistics.median(a / b for a, b in zip(rounds.p50_us[one], beside, strict=True))


def _measure_closed(plan: Plan) -> Rounds:
    """A server without the editor and one whose page is not open, in turns."""
    rounds = Rounds()
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        targets = scene_targets(plan.scenes[0], Path(folder))
        without = stack.enter_context(Server([*targets, "--no-web"]))
        closed = stack.enter_context(Server([*targets, "--web", "--web-port", "0"]))
        first, second = (stack.enter_context(connect(one.step_endpoint)) for one in (without, closed))
        stack.enter_context(a_core_each(without.pid, closed.pid))
        for _ in range(plan.rounds):
            rounds.measure(plan.counts, [Subject(_NO_WEB, first.step), Subject(_NOT_OPENED, second.step)])
    return rounds


def _measure_open(plan: Plan) -> Rounds:
    """One server before, with and after a page: two servers would both feel the page of one.

    Much moves, so that the page gets all that it can. The client and the server stay where they are; the editor and
    the page go where the system likes.
    """
    rounds = Rounds()
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        targets = _moving_targets(plan, Path(folder), swings_mjcf())
        server = stack.enter_context(Server([*targets, "--web", "--web-port", "0"]))
        client = stack.enter_context(connect(server.step_endpoint))
        for _ in range(plan.rounds):
            with a_core_each(server.pid):
                rounds.measure(plan.counts, [Subject(_BEFORE, client.step)])
            with _pages(server, 1):
                with a_core_each(server.pid):
                    rounds.measure(plan.counts, [Subject(_OPEN, client.step)])
            with a_core_each(server.pid):
                rounds.measure(plan.counts, [Subject(_AFTER, client.step)])
    return rounds


def _deliver(meshes: int) -> tuple[float, float]:
    """How long pages take to have a scene of large meshes: the first one, which starts the editor, and the next."""
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        server = stack.enter_context(Server([str(write_meshes(Path(folder), meshes)), "--web", "--web-port", "0"]))
        child = stack.enter_context(PipeChild(child_module("editor_child", str(server.said["web"]), "1")))
        return float(child.ask(meshes)), float(child.ask(meshes))


def _draw(meshes: int) -> dict[str, float]:
    """How long it takes from the address to the sight of all meshes, in a browser that runs already."""
    program = find_browser()
    if program is None:
        return {}
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        size = f"--window-size={_WINDOW[0]},{_WINDOW[1]}"
        browser = stack.enter_context(Browser(program, Path(folder), *FLAGS, size))
        server = stack.enter_context(Server([str(write_meshes(Path(folder), meshes)), "--web", "--web-port", "0"]))
        with connect(server.step_endpoint, "auto", operator=True) as client:
            client.viewport.set_camera(_CAMERA_M, rotation_euler=(0.0, 0.0, 0.0), fov=_FOV)
        found = {}
        for name in ("first page", "next page"):
            page = browser.open("about:blank")
            found[name] = _seen_s(page, str(server.said["web"]), meshes)
            page.end()
    return found


def _seen_s(page: Page, url: str, meshes: int) -> float:
    """Look at every picture that the page shows, until all meshes are in one."""
    page.ask("Page.startScreencast", format="jpeg", quality=80)
    began_s = time.monotonic()
    page.ask("Page.navigate", url=url)
    while time.monotonic() < began_s + _DRAWN_LIMIT_S:
        shown = page.next_event("Page.screencastFrame")
        now_s = time.monotonic() - began_s
        page.ask("Page.screencastFrameAck", sessionId=shown["sessionId"])
        if _red_patches(base64.b64decode(shown["data"])) == meshes:
            return now_s
    return float("inf")


def _red_patches(picture: bytes) -> int:
    """How many patches of red stand side by side."""
    red, green, blue = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int).transpose(2, 0, 1)
    columns = ((red > 40) & (red > 2 * green) & (red > 2 * blue))[*_SEEN_AT].sum(axis=0) > 2
    return int(np.count_nonzero(np.diff(columns.astype(int), prepend=0) == 1))


def _watch(plan: Plan, count: int, moving: str) -> dict[str, float]:
    """What the server and the editor use, and what the pages get, while a scene plays live in which much moves."""
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        targets = _moving_targets(plan, Path(folder), moving)
        server = stack.enter_context(Server([*targets, "--web", "--web-port", "0"]))
        client = stack.enter_context(connect(server.step_endpoint, step_mode="live", observer=True))
        with _pages(server, count) as pages:
            before, began_s, sim_s = _cpu_s(server.pid), time.monotonic(), client.sim.status().sim_time or 0.0
            pages.ask("count")
            time.sleep(plan.watch_s)
            received = pages.ask("count")
            passed_s = time.monotonic() - began_s
            simulated_s = (client.sim.status().sim_time or 0.0) - sim_s
            used_s = _cpu_s(server.pid) - before
    return {
        "cores": used_s / passed_s,
        "rate_hz": min(received) / passed_s,
        "realtime": simulated_s / passed_s,
        "pages": float(count),
    }


def _moving_targets(plan: Plan, folder: Path, moving: str) -> list[str]:
    """The scene of the plan, and beside it a model that never comes to rest: what rests is not sent."""
    model = folder / "moving.xml"
    model.write_text(moving, encoding="utf-8")
    return [*scene_targets(plan.scenes[0], folder), str(model)]


def swings_mjcf() -> str:
    """Pendulums that never come to rest, each of another look."""
    looks = "".join(
        f'<body pos="{0.3 * number} 1 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03"/>'
        f'<geom type="box" size="0.05 {0.02 + 0.01 * number} 0.05" pos="0.4 0 0"/></body>'
        for number in range(_SWINGS)
    )
    return f'<mujoco model="swings">{_NO_CONTACTS}<worldbody>{looks}</worldbody></mujoco>'


def bodies_mjcf(count: int) -> str:
    """So many boxes that swing, each a body."""
    boxes = "".join(
        f'<body pos="{0.3 * (number % 40)} {0.3 * (number // 40)} 1"><joint axis="0 1 0"/>'
        '<geom type="box" size="0.1 0.05 0.05" pos="0.1 0 0"/></body>'
        for number in range(count)
    )
    return f'<mujoco model="bodies">{_NO_CONTACTS}<worldbody>{boxes}</worldbody></mujoco>'


def write_meshes(folder: Path, count: int) -> Path:
    """Write so many large meshes, each another one, and a model of them; its file."""
    assets = bodies = ""
    for number in range(count):
        mesh = trimesh.creation.icosphere(subdivisions=6)
        x, y, _ = mesh.vertices.T
        mesh.vertices *= 0.3 + 0.02 * (np.sin((5 + number) * x) * np.cos(7 * y))[:, None]
        mesh.export(folder / f"mesh_{number}.stl")
        assets += f'<mesh name="mesh_{number}" file="mesh_{number}.stl" inertia="shell"/>'
        bodies += (
            f'<body pos="0 {number * _APART_M} 1"><joint axis="0 0 1"/>'
            f'<geom type="mesh" mesh="mesh_{number}" rgba="0.9 0.05 0.05 1"/></body>'
        )
    model = folder / "meshes.xml"
    head = f'<mujoco model="meshes">{_NO_CONTACTS}<asset>{assets}</asset>'
    model.write_text(f"{head}<worldbody>{bodies}</worldbody></mujoco>", encoding="utf-8")
    return model


@contextlib.contextmanager
def _pages(server: Server, count: int) -> Iterator[PipeChild]:
    """So many open pages, in one process of their own; all of them get updates when this begins."""
    with PipeChild(child_module("editor_child", str(server.said["web"]), str(count))) as child:
        child.ask("open")
        time.sleep(_SETTLE_S + count * _SETTLE_PAGE_S)
        yield child


def _cpu_s(pid: int) -> float:
    """Processor time of a process and its children, in seconds."""
    server = psutil.Process(pid)
    family: list[Any] = [server, *server.children(recursive=True)]
    return float(sum(sum(one.cpu_times()[:2]) for one in family))
