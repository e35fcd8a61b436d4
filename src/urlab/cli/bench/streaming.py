"""Live physics while cameras stream: does it keep its pace, and do the frames come."""

import threading
import time
from contextlib import ExitStack
from typing import Any

import zmq

from urlab.cli.bench.lateness_child import ENDPOINTS_FILE, RESULT_FILE
from urlab.cli.bench.pacing import summarize_lateness
from urlab.cli.bench.plan import SCENES, Plan
from urlab.cli.bench.results import StreamingResult
from urlab.cli.bench.spawn import LATENESS, running
from urlab.cli.bench.stepping import Tick

_CAMERAS = ("panda/overhead", "panda/wrist")
_SCENE = "demo"
_GRACE_S = 60.0
_POLL_MS = 200


def measure_streaming(plan: Plan, tick: Tick) -> StreamingResult:
    """Two cameras with a subscriber each, and one more that subscribes and never reads."""
    tick(f"two cameras for {plan.live_s:g} s")
    with running([*LATENESS, str(plan.live_s), "--sockets", *SCENES[_SCENE]]) as (child, folder):
        endpoints, _ = child.wait_for_file(folder / ENDPOINTS_FILE)
        with ExitStack() as opened:
            context = opened.enter_context(zmq.Context())
            _stuck(opened, context, endpoints["cameras"][_CAMERAS[0]])
            counts = [_count_frames(opened, context, endpoints["cameras"][name]) for name in _CAMERAS]
            found, _ = child.wait_for_file(folder / RESULT_FILE, limit_s=plan.live_s + _GRACE_S)
            frames = [count() for count in counts]
    return StreamingResult(
        scene=_SCENE,
        cameras=list(_CAMERAS),
        watched_s=plan.live_s,
        real_time_factor=found["real_time_factor"],
        lateness=summarize_lateness(found["late_ms"]),
        frames_hz=frames,
    )


def _stuck(opened: ExitStack, context: "zmq.Context[Any]", endpoint: str) -> None:
    """A subscriber whose program has stopped reading."""
    socket = opened.enter_context(context.socket(zmq.SUB))
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVHWM, 1)
    socket.subscribe(b"")
    socket.connect(endpoint)


def _count_frames(opened: ExitStack, context: "zmq.Context[Any]", endpoint: str) -> Any:
    """Counts the frames of one camera on a thread; calling what comes back ends it and tells the rate."""
    done, arrived = threading.Event(), []

    def listen() -> None:
        with context.socket(zmq.SUB) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.subscribe(b"")
            socket.connect(endpoint)
            while not done.is_set():
                if socket.poll(_POLL_MS) and not socket.recv_multipart()[0].startswith(b"meta/"):
                    arrived.append(time.perf_counter())

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()

    def finish() -> float:
        done.set()
        thread.join()
        return (len(arrived) - 1) / (arrived[-1] - arrived[0]) if len(arrived) > 1 else 0.0

    opened.callback(done.set)
    return finish
