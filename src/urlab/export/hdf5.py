"""Recordings as demonstrations: HDF5 in the layout that robomimic reads."""

import importlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from urlab.export.episodes import ExportSource, LearnerSamples, RecordedEpisode, check_samples, samples_of
from urlab.export.formats import Advance, ExportFormat, require, tokens
from urlab.files import replacing
from urlab.paths import FileKind

_MARK = b"urlab-headless"
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def _is_ours(head: bytes) -> bool:
    return head.startswith(_SIGNATURE) and _MARK in head


class Hdf5(ExportFormat, name="hdf5"):
    """``/data/demo_0`` and so on: actions, states, obs, next_obs, rewards, dones; the model in ``model_file``.

    Observations are ``joint_pos``, ``joint_vel``, ``object`` (positions of free and ball joints), every sensor by its
    name, and ``<camera>_image``. States are the time, qpos and qvel of the whole model. Rewards are 0 where an episode
    was not judged; what one came to that was is in its attributes.
    """

    kind = FileKind("an HDF5 file of ours", ".hdf5", _is_ours)
    splits = True

    @classmethod
    def check(cls) -> None:
        """It takes h5py."""
        require("hdf5", "h5py")

    @classmethod
    def check_episodes(cls, episodes: Sequence[RecordedEpisode]) -> None:
        """Learners need controls."""
        check_samples(episodes)

    def write(self, source: ExportSource, path: Path, advance: Advance) -> None:
        """Write episode by episode."""
        h5py = importlib.import_module("h5py")
        with replacing(path, self.kind) as file:
            opened = f"/proc/{os.getpid()}/fd/{file.fileno()}"
            with h5py.File(opened, "w", locking=False) as out:
                out.attrs["writer"] = _MARK.decode()
                data = out.create_group("data")
                total = 0
                for number, episode in enumerate(source.episodes):
                    total += self._demo(data.create_group(f"demo_{number}"), episode, source, advance)
                data.attrs["total"] = total
                data.attrs["env_args"] = json.dumps(self._env_args(source))

    def _env_args(self, source: ExportSource) -> dict[str, Any]:
        level = source.about.get("level")
        return {
            "env_name": str(level or "urlab"),
            "type": 1,
            "env_kwargs": {"control_freq": self.rate_hz, **source.about},
        }

    def _demo(self, group: Any, episode: RecordedEpisode, source: ExportSource, advance: Advance) -> int:
        samples = samples_of(episode)
        states = [np.concatenate(([one.sim_time], one.qpos, one.qvel)) for one in episode.states()]
        group.attrs["num_samples"] = samples.count
        group.attrs["model_file"] = str(source.scene_of(episode.name).spec.to_xml())
        group.attrs["task"] = episode.task
        group["actions"] = samples.action
        group["states"] = np.array(states[:-1])
        group["rewards"] = np.zeros(samples.count) if episode.outcome is None else episode.outcome.rewards[1:]
        if episode.outcome is not None:
            group.attrs.update({"success": episode.outcome.success, **episode.outcome.facts})
        group["dones"] = np.array([*np.zeros(samples.count - 1, np.int64), 1])
        for name, rows in _observations(samples, _image_keys(source.pictures).values()):
            group[f"obs/{name}"], group[f"next_obs/{name}"] = rows[:-1], rows[1:]
        self._pictures(group, episode, source, advance)
        return samples.count

    @staticmethod
    def _pictures(group: Any, episode: RecordedEpisode, source: ExportSource, advance: Advance) -> None:
        sets, keys = {}, _image_keys(source.pictures)
        for name, camera in source.pictures.items():
            width, height = camera.size
            shape = (len(episode.frames) - 1, height, width, 3)
            key = keys[name]
            sets[name] = [
                group.create_dataset(f"{part}/{key}", shape, np.uint8, chunks=(1, *shape[1:]), compression="gzip")
                for part in ("obs", "next_obs")
            ]
        for row, frame in enumerate(episode.frames.tolist()):
            for name, camera in source.pictures.items():
                picture = camera.draw(episode.clip.state(frame))
                for shift, one in enumerate(sets[name]):
                    if 0 <= row - shift < len(one):
                        one[row - shift] = picture
            advance()


def _observations(samples: LearnerSamples, cameras: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """What is observed beside pictures, by names that are no paths; ``cameras`` are names that are taken."""
    yield "joint_pos", samples.joint_pos
    yield "joint_vel", samples.joint_vel
    if samples.free_names:
        yield "object", samples.free_pos
    taken = {"joint_pos", "joint_vel", "object", *cameras}
    for name, rows in samples.sensors.items():
        key = name.replace("/", "_")
        while key in taken:
            key = f"{key}_sensor"
        taken.add(key)
        yield key, rows


def _image_keys(cameras: Iterable[str]) -> dict[str, str]:
    return {name: f"{token}_image" for name, token in tokens(cameras, "_-. ").items()}
