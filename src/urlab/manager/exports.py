"""Exports of saved recordings, drawn on the scene that the viewport shows."""

from dataclasses import replace

from urlab.cameras.scene_camera import resolve_camera
from urlab.compile import CompiledScene
from urlab.config import RenderProfile
from urlab.errors import BadValue, PathNotReadable, known
from urlab.export import (
    Advance,
    CameraPictures,
    Clip,
    ExportJob,
    ExportJobs,
    RecordedState,
    StatePictures,
    export_format,
)
from urlab.export.clip import frame_range
from urlab.files import check_replaceable
from urlab.manager.play import Play
from urlab.manager.scene_view import ViewportSource
from urlab.numbers import finite_number
from urlab.recording import PlayableRecording, fitted, load_path, read_header, read_recording, save_path
from urlab.viewport import DEFAULT_SIZE, PosedModel, ViewPictures, Viewport, check_size
from urlab_wire.ops.recording import RecordingExportRequest
from urlab_wire.pixels import Bytes

DEFAULT_FPS = 30.0
MIN_FPS, MAX_FPS = 1.0, 240.0


class Exports:
    """Begins exports, and knows those of one server (``jobs``). Any thread may call it; it takes no physics lock."""

    def __init__(
        self, play: Play, source: ViewportSource, viewport: Viewport, profile: RenderProfile = RenderProfile.AUTO
    ) -> None:
        self._play = play
        self._source = source
        self._viewport = viewport
        self._profile = profile
        self.jobs = ExportJobs()

    def begin(self, request: RecordingExportRequest, caller: str = "") -> tuple[ExportJob, list[str]]:
        """Check all that a request of a caller asks, and begin; the export, and what the client should know.

        The recording is read here, so that what is wrong with it is told at once; drawing and writing come later.
        """
        chosen = export_format(request.format)
        rate_hz = _rate_hz(request.fps)
        chosen.check()
        scene, posed = self._source.shown()
        playable = self._fitted(request.path, scene)
        clip = _clip(playable, posed, request)
        frames = clip.sampled(rate_hz)
        folder, roots = self._play.world.project.replays_dir, self._play.roots
        path = save_path(request.out or f"{playable.name}{chosen.kind.suffix}", folder, roots, chosen.kind)
        check_replaceable(path, chosen.kind)
        pictures = self._pictures(request, scene, posed)
        written = chosen(rate_hz)

        def write(advance: Advance) -> None:
            try:
                written.write(clip, frames.tolist(), pictures, path, advance)
            finally:
                pictures.close()

        job = self.jobs.begin(chosen.name, request.path, path, len(frames), write, caller)
        return job, _missing_joints(playable)

    def _fitted(self, path: str, scene: CompiledScene) -> PlayableRecording:
        where = load_path(path, self._play.world.project.replays_dir, self._play.roots)
        recording = read_recording(where)
        try:
            return fitted(where.stem, recording, scene.joints)
        except PathNotReadable as other:
            level = read_header(where).level
            hint = f"; it was recorded in {level}: open that level first" if level else ""
            raise PathNotReadable(f"{other.message}{hint}") from other

    def _pictures(self, request: RecordingExportRequest, scene: CompiledScene, posed: PosedModel) -> StatePictures:
        """Through the camera that is named, or that the viewport looks through, or the viewport's own."""
        name = request.camera or self._viewport.looks_through
        camera = None if name is None else resolve_camera(posed.cameras, name)
        width, height = DEFAULT_SIZE if camera is None else camera.slot.resolution
        width = width if request.width is None else request.width
        height = height if request.height is None else request.height
        check_size(width, height)
        if camera is None:
            return _ViewedStates(self._viewport.pictures(width, height), posed)
        return CameraPictures(scene, camera.slot, self._profile, (width, height))


class _ViewedStates:
    """Recorded states as the viewport shows them."""

    def __init__(self, pictures: ViewPictures, posed: PosedModel) -> None:
        self._pictures = pictures
        self._posed = replace(posed, selected_bodies=(), act=None, ctrl=None, held=())
        self.size = pictures.size

    def draw(self, state: RecordedState) -> Bytes:
        return self._pictures.draw(replace(self._posed, qpos=state.qpos, qvel=state.qvel, sim_time=state.sim_time))

    def close(self) -> None:
        self._pictures.close()


def _rate_hz(fps: float | None) -> float:
    rate_hz = DEFAULT_FPS if fps is None else finite_number("fps", fps)
    if not MIN_FPS <= rate_hz <= MAX_FPS:
        raise BadValue(f"fps must be between {MIN_FPS:g} and {MAX_FPS:g}, but is {rate_hz:g}")
    return rate_hz


def _clip(playable: PlayableRecording, posed: PosedModel, request: RecordingExportRequest) -> Clip:
    first, last = frame_range(playable, request.from_, request.to)
    return Clip(playable, first, last, posed.model.nv, posed.qpos, posed.mocap_pos, posed.mocap_quat)


def _missing_joints(playable: PlayableRecording) -> list[str]:
    """What of the recording is not shown."""
    shown = {recorded for recorded, _ in playable.mapping.pairs}
    missing = [one.name for one in playable.recording.joints if one.name not in shown]
    if not missing:
        return []
    total = len(playable.recording.joints)
    return [f"{len(missing)} of the recording's {total} joints are not in this scene: {known(missing)}"]
