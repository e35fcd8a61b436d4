"""One camera of a server: finding it by its name, and its pictures as they come."""

from collections.abc import Iterator
from contextlib import contextmanager

from urlab.cli.complaint import WRONG_USE, CommandError
from urlab.cli.watch.server import Server
from urlab_client import CameraFrame, URLabCameraView

FIRST_FRAME_S = 10.0
_GLOBAL = "global/"


def find_camera(server: Server, asked: str) -> URLabCameraView:
    """The camera of that name: ``prefix/name``, or the bare name where only one has it."""
    trouble = server.trouble()
    if trouble is not None:
        raise CommandError(f"{trouble}: there are no cameras")
    cameras = server.cameras
    name = asked.removeprefix(_GLOBAL)
    same = [view for view in cameras.values() if view.name == name]
    if name not in cameras and len(same) != 1:
        raise CommandError(_unknown(asked, list(cameras), [view.full_name for view in same]), WRONG_USE)
    return cameras[name] if name in cameras else same[0]


@contextmanager
def streaming(server: Server, asked: str) -> Iterator[URLabCameraView]:
    """The camera of that name, fed with what it streams; CommandError when it does not stream."""
    view = find_camera(server, asked)
    check_streams(server, view)
    server.start_stream(view)
    try:
        yield view
    finally:
        server.stop_streams()


def check_streams(server: Server, view: URLabCameraView) -> None:
    """CommandError unless there will be pictures."""
    if server.no_pictures is not None:
        raise CommandError(f"{server.endpoint} draws no pictures: {server.no_pictures}")
    if not view.streams:
        raise CommandError(
            f"camera {view.full_name!r} does not stream: was the server started with --no-camera-streams?"
        )


def first_frame(server: Server, view: URLabCameraView) -> CameraFrame:
    """The first picture that comes; CommandError when there is none in time."""
    frame = view.wait_for_newer(0, FIRST_FRAME_S)
    if frame is None:
        where = server.stream_endpoint(view.zmq_endpoint or "")
        why = server.trouble() or f"nothing usable came from {where}"
        raise CommandError(f"no picture of {view.full_name!r} within {FIRST_FRAME_S:g} s: {why}")
    return frame


def describe(view: URLabCameraView, frame: CameraFrame) -> str:
    """Name, mode and size, for people."""
    width, height = frame.resolution
    return f"{view.full_name} ({frame.mode.value}, {width}x{height})"


def _unknown(asked: str, names: list[str], same: list[str]) -> str:
    if same:
        return f"several cameras are called {asked!r}: {', '.join(same)}"
    return f"there is no camera {asked!r}; there are: {', '.join(names) or 'none'}"
