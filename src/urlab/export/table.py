"""Recordings as tables: Parquet, a row for every frame."""

import contextlib
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from urlab.export.episodes import ExportSource, RecordedEpisode
from urlab.export.formats import Advance, CameraUse, ExportFormat, require
from urlab.files import replacing
from urlab.paths import FileKind

_ROWS = 16_384
"""Of one row group."""


class Parquet(ExportFormat, name="parquet"):
    """One file: ``episode``, ``frame``, ``time``, then ``qpos/<joint>``, ``qvel/<joint>``, ``ctrl/..``, ``sensor/..``.

    What has several numbers is a list of fixed length. Episodes that were judged have ``task``, ``reward``, ``success``
    and further facts. The schema's metadata says what was recorded.
    """

    kind = FileKind(
        "to be replaced, as a Parquet file does not begin with who wrote it: move it away", ".parquet", lambda _: False
    )
    cameras = CameraUse.NONE
    every_frame = True
    splits = True

    @classmethod
    def check(cls) -> None:
        """It takes pyarrow."""
        require("parquet", "pyarrow")

    def write(self, source: ExportSource, path: Path, advance: Advance) -> None:
        """Write row group by row group."""
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        metadata = {"urlab": json.dumps(dict(source.about))}
        with replacing(path, self.kind) as file, contextlib.ExitStack() as opened:
            writer = None
            for number, episode in enumerate(source.episodes):
                for columns, rows in _row_groups(arrow, episode, number):
                    table = arrow.table(columns).replace_schema_metadata(metadata)
                    # closed in any case: one that is left open would write to the closed file when it is collected
                    writer = writer or opened.enter_context(parquet.ParquetWriter(file, table.schema))
                    writer.write_table(table)
                    for _ in range(rows):
                        advance()


def _row_groups(arrow: Any, episode: RecordedEpisode, number: int) -> Iterator[tuple[dict[str, Any], int]]:
    for begin in range(0, len(episode.frames), _ROWS):
        frames = episode.frames[begin : begin + _ROWS]
        recording = episode.recording
        columns = {
            "episode": arrow.array(np.full(len(frames), number), arrow.int64()),
            "frame": arrow.array(frames - episode.clip.first, arrow.int64()),
            "time": arrow.array(recording.times[frames]),
            **_judged(arrow, episode, slice(begin, begin + len(frames))),
        }
        q = v = s = 0
        for joint in recording.joints:
            columns[f"qpos/{joint.name}"] = _column(arrow, recording.qpos[frames, q : q + joint.qpos_dim])
            columns[f"qvel/{joint.name}"] = _column(arrow, recording.qvel[frames, v : v + joint.qvel_dim])
            q, v = q + joint.qpos_dim, v + joint.qvel_dim
        for index, name in enumerate(recording.signals.controls):
            columns[f"ctrl/{name}"] = _column(arrow, recording.ctrl[frames, index : index + 1])
        for name, dim in recording.signals.sensors:
            columns[f"sensor/{name}"] = _column(arrow, recording.sensordata[frames, s : s + dim])
            s += dim
        yield columns, len(frames)


def _judged(arrow: Any, episode: RecordedEpisode, rows: slice) -> dict[str, Any]:
    if episode.outcome is None:
        return {}
    rewards = episode.outcome.rewards[rows]
    facts = {"task": episode.task, "success": episode.outcome.success, **episode.outcome.facts}
    return {"reward": arrow.array(rewards), **{name: arrow.repeat(one, len(rewards)) for name, one in facts.items()}}


def _column(arrow: Any, numbers: Any) -> Any:
    """Numbers, or lists of so many where there are several."""
    flat = arrow.array(np.ascontiguousarray(numbers).reshape(-1))
    return flat if numbers.shape[1] == 1 else arrow.FixedSizeListArray.from_arrays(flat, numbers.shape[1])
