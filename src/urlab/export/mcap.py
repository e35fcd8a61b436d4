"""Recordings as MCAP: what ROS 2 and Foxglove read."""

import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image

from urlab.compile.compiled_scene import CompiledScene
from urlab.export.clip import RecordedState
from urlab.export.episodes import ExportSource, RecordedEpisode
from urlab.export.formats import Advance, ExportFormat, require, tokens
from urlab.export.pictures import StatePictures
from urlab.files import replacing
from urlab.recording.mcap_frames import MCAP, FrameMessages, about_frames, message_record
from urlab.recording.recorder import FrameBlock
from urlab.recording.ros_messages import compressed_image, transforms
from urlab_wire.pixels import Bytes

_CHUNK_BYTES = 4 << 20
_Records = list[tuple[int, int, bytes]]
"""(channel, log time in ns, record)."""


class Mcap(ExportFormat, name="mcap"):
    """``/clock``, ``/joint_states``, ``/controls``, ``/sensors``, ``/tf``, ``/urlab/state``, and a topic per camera.

    It has every frame, and pictures at the rate; it can be replayed and exported again. Several episodes follow one
    another, as after a reset; what those that were judged came to is in the metadata record.
    """

    kind = MCAP
    every_frame = True

    @classmethod
    def check(cls) -> None:
        """It takes mcap."""
        require("mcap", "mcap", "zstandard")

    def write(self, source: ExportSource, path: Path, advance: Advance) -> None:
        """Write chunk by chunk."""
        from urlab.recording.mcap_file import McapFile, Topic

        recording = source.episodes[0].recording
        messages = FrameMessages(recording.joints, recording.signals)
        topics = [Topic(*one) for one in messages.topics]
        topics.append(Topic("/tf", "tf2_msgs/TFMessage"))
        cameras = tokens(source.pictures, "").values()
        topics += [Topic(f"/cameras/{one}/compressed", "sensor_msgs/CompressedImage") for one in cameras]
        about = {**source.about, **about_frames(recording.name, recording.joints, recording.signals)}
        with replacing(path, self.kind) as file, io.FileIO(os.dup(file.fileno()), "wb") as raw:
            out = McapFile(raw, topics, {**about, **_episodes(source), "frame_count": source.total})
            chunk = _ChunkOfMessages()
            for content in _contents(messages, source, self.rate_hz):
                for channel, log_ns, record in content:
                    chunk.add(channel, log_ns, record)
                if chunk.size > _CHUNK_BYTES:
                    out.append(chunk.content())
                    chunk = _ChunkOfMessages()
                advance()
            if chunk.size:
                out.append(chunk.content())
            out.finish()


class _ChunkOfMessages:
    """Records that will be a chunk."""

    def __init__(self) -> None:
        self.size = 0
        self._records: list[bytes] = []
        self._places: dict[int, list[tuple[int, int]]] = {}
        self._times: list[int] = []

    def add(self, channel: int, log_ns: int, record: bytes) -> None:
        self._places.setdefault(channel, []).append((log_ns, self.size))
        self._records.append(record)
        self._times.append(log_ns)
        self.size += len(record)

    def content(self) -> Any:
        from urlab.recording.mcap_file import ChunkContent

        places = {channel: np.array(pairs, np.uint64) for channel, pairs in self._places.items()}
        return ChunkContent(b"".join(self._records), min(self._times), max(self._times), places)


def _episodes(source: ExportSource) -> dict[str, Any]:
    """What those that were judged came to, for the metadata."""
    judged = [(one, one.outcome) for one in source.episodes if one.outcome is not None]
    facts = [
        {"name": one.name, "frames": len(one.frames), "task": one.task, "success": outcome.success, **outcome.facts}
        for one, outcome in judged
    ]
    return {"episodes": facts} if facts else {}


def _contents(messages: FrameMessages, source: ExportSource, rate_hz: float) -> Iterator[_Records]:
    """For every frame its records; log times and sequence numbers go on from episode to episode."""
    names = tokens(source.pictures, "").values()
    number, begin_s = 0, float(source.episodes[0].recording.times[source.episodes[0].frames[0]])
    poses: tuple[CompiledScene, _BodyPoses] | None = None
    for episode in source.episodes:
        scene = source.scene_of(episode.name)
        if poses is None or poses[0] is not scene:
            poses = scene, _BodyPoses(scene)
        elapsed = episode.recording.elapsed()[episode.frames]
        elapsed += begin_s - elapsed[0]
        drawn = set(episode.clip.sampled(rate_hz).tolist()) if source.pictures else set()
        for frame, elapsed_s in zip(episode.frames.tolist(), elapsed, strict=True):
            cameras = dict(zip(names, source.pictures.values(), strict=True)) if frame in drawn else {}
            yield _frame_records(messages, episode, frame, (number, elapsed_s), poses[1], cameras)
            number += 1
        begin_s = float(elapsed[-1]) + (float(elapsed[-1] - elapsed[-2]) if len(elapsed) > 1 else 0.0)


def _frame_records(
    messages: FrameMessages,
    episode: RecordedEpisode,
    frame: int,
    place: tuple[int, float],
    poses: "_BodyPoses",
    cameras: Mapping[str, StatePictures],
) -> _Records:
    """``place`` is the frame's number in the file, and its time there in seconds."""
    recording, rows, (number, elapsed_s) = episode.recording, slice(frame, frame + 1), place
    arrays = FrameBlock(
        recording.times[rows],
        np.array([elapsed_s]),
        recording.qpos[rows],
        recording.qvel[rows],
        recording.ctrl[rows],
        recording.sensordata[rows],
    )
    data, log_times, offsets = messages.encode(arrays, number)
    log_ns = int(log_times[0])
    ends = [*offsets[1:], len(data)]
    records = [(channel, log_ns, data[a:b]) for channel, (a, b) in enumerate(zip(offsets, ends, strict=True), 1)]
    moved, state = len(messages.topics) + 1, episode.clip.state(frame)
    records.append((moved, log_ns, message_record(moved, number, log_ns, poses.message(state))))
    for channel, (name, camera) in enumerate(cameras.items(), moved + 1):
        picture = compressed_image(name, _jpeg(camera.draw(state))).filled(state.sim_time)
        records.append((channel, log_ns, message_record(channel, number, log_ns, picture)))
    return records


class _BodyPoses:
    """Where all bodies of a scene are in a state, as one message for /tf."""

    def __init__(self, scene: CompiledScene) -> None:
        self._model = scene.model
        self._data = mujoco.MjData(self._model)
        names = [self._model.body(number).name or f"body_{number}" for number in range(1, self._model.nbody)]
        self._template = transforms(names)

    def message(self, state: RecordedState) -> bytes:
        data = self._data
        data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = state.qpos, state.mocap_pos, state.mocap_quat
        mujoco.mj_kinematics(self._model, data)
        poses = np.concatenate((data.xpos, np.roll(data.xquat, -1, axis=1)), axis=1)[1:]
        return self._template.filled(state.sim_time, **{f"pose_{index}": one for index, one in enumerate(poses)})


def _jpeg(picture: Bytes) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()
