"""What a step's ``include_cameras`` may ask."""

from urlab.compile import CompiledScene
from urlab.errors import BadValue, known
from urlab.ops.checks import one_of
from urlab_wire.enums import CameraTiming


def check_cameras(scene: CompiledScene, asked: bool | dict[str, str] | None) -> list[str]:
    """Refuse unknown names and timings; returns what the caller should know about the others."""
    if not asked:
        return []
    if isinstance(asked, dict):
        names = camera_names(scene)
        for name, timing in asked.items():
            if name not in names:
                raise BadValue(f"there is no camera {name!r}; there are: {known(names)}")
            one_of(f"include_cameras[{name!r}]", CameraTiming, timing)
    return ["this server does not render cameras; the reply has no frames"]


def camera_names(scene: CompiledScene) -> set[str]:
    """Every name that a camera answers to: ``prefix/name``, and the bare name."""
    qualified = {f"{robot.prefix}/{camera.short}" for robot in scene.articulations for camera in robot.cameras}
    bare = {camera.short for robot in scene.articulations for camera in robot.cameras}
    return qualified | bare | {camera.name for camera in scene.global_cameras}
