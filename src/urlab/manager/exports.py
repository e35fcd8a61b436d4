"""Exports of saved recordings, drawn on the scene that the viewport shows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from urlab.cameras.scene_camera import resolve_camera
from urlab.compile import CompiledScene
from urlab.config import RenderProfile
from urlab.errors import BadValue, PathNotReadable, known
from urlab.export import (
    Advance,
    CameraPictures,
    CameraUse,
    Clip,
    ExportFormat,
    ExportJob,
    ExportJobs,
    ExportSource,
    RecordedEpisode,
    RecordedState,
    StatePictures,
    export_format,
)
from urlab.export.clip import frame_range
from urlab.export.episodes import split_at_resets
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

        Recordings are read here, so that what is wrong with one is told at once; drawing and writing come later.
        """
        chosen = export_format(request.format)
        rate_hz = _rate_hz(request.fps)
        chosen.check()
        if request.also and not chosen.splits:
            raise BadValue(f"format {chosen.name} holds one recording, but also names {len(request.also)} more")
        scene, posed = self._source.shown()
        playables = [self._fitted(one, scene) for one in (request.path, *(request.also or ()))]
        episodes = [one for playable in playables for one in _episodes(playable, posed, request, chosen, rate_hz)]
        folder, roots = self._play.world.project.replays_dir, self._play.roots
        path = save_path(request.out or f"{playables[0].name}{chosen.kind.suffix}", folder, roots, chosen.kind)
        chosen.check_target(path)
        chosen.check_episodes(episodes)
        written = chosen(rate_hz)
        pictures = self._pictures(request, chosen, scene, posed)
        source = ExportSource(lambda _: scene, episodes, pictures, self._about(request))

        def write(advance: Advance) -> None:
            try:
                written.write(source, path, advance)
            finally:
                source.close()

        job = self.jobs.begin(chosen.name, request.path, path, source.total, write, caller)
        return job, [warning for one in playables for warning in _missing_joints(one)]

    def _about(self, request: RecordingExportRequest) -> dict[str, Any]:
        """What the file of the first recording says of it."""
        header = read_header(self._found(request.path))
        return {"level": header.level, "timestep": header.timestep, "task": request.task}

    def _found(self, path: str) -> Path:
        return load_path(path, self._play.world.project.replays_dir, self._play.roots)

    def _fitted(self, path: str, scene: CompiledScene) -> PlayableRecording:
        where = self._found(path)
        recording = read_recording(where)
        try:
            return fitted(where.stem, recording, scene.joints)
        except PathNotReadable as other:
            level = read_header(where).level
            hint = f"; it was recorded in {level}: open that level first" if level else ""
            raise PathNotReadable(f"{other.message}{hint}") from other

    def _pictures(
        self, request: RecordingExportRequest, chosen: type[ExportFormat], scene: CompiledScene, posed: PosedModel
    ) -> dict[str, StatePictures]:
        """Of a film: through the camera that is named, or that the viewport looks through, or the viewport's own."""
        named = request.cameras if request.cameras is not None else [request.camera] if request.camera else None
        if chosen.cameras is CameraUse.NONE and named:
            raise BadValue(f"format {chosen.name} has no pictures: leave the cameras out")
        if chosen.cameras is CameraUse.ONE:
            if request.cameras is not None:
                raise BadValue(f"format {chosen.name} is of one camera: name it as camera, not in cameras")
            return {"film": self._seen(request, request.camera or self._viewport.looks_through, scene, posed)}
        wanted = list(posed.cameras) if named is None and chosen.cameras is CameraUse.ALL else named or []
        names = [resolve_camera(posed.cameras, one).name for one in wanted]
        return {one: self._seen(request, one, scene, posed) for one in dict.fromkeys(names)}

    def _seen(
        self, request: RecordingExportRequest, name: str | None, scene: CompiledScene, posed: PosedModel
    ) -> StatePictures:
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


def _episodes(
    playable: PlayableRecording,
    posed: PosedModel,
    request: RecordingExportRequest,
    chosen: type[ExportFormat],
    rate_hz: float,
) -> list[RecordedEpisode]:
    first, last = frame_range(playable, request.from_, request.to)
    clip = Clip(playable, first, last, posed.model.nv, posed.qpos, posed.mocap_pos, posed.mocap_quat)
    parts = split_at_resets(clip) if chosen.splits else [clip]
    every = chosen.every_frame and request.fps is None
    return [
        RecordedEpisode(part, part.all_frames() if every else part.sampled(rate_hz), request.task or playable.name)
        for part in parts
    ]


def _missing_joints(playable: PlayableRecording) -> list[str]:
    """What of the recording is not shown."""
    shown = {recorded for recorded, _ in playable.mapping.pairs}
    missing = [one.name for one in playable.recording.joints if one.name not in shown]
    if not missing:
        return []
    total = len(playable.recording.joints)
    return [f"{len(missing)} of the recording's {total} joints are not in this scene: {known(missing)}"]
