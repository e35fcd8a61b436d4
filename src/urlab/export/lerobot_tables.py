"""The tables and statistics of a LeRobot dataset."""

import importlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
_PICTURES_KEPT = 100
_PIXELS_APART = 4
"""Statistics of pictures are of every fourth pixel of at most so many pictures."""

Stats = dict[str, Any]


def frame_table(columns: dict[str, NDArray[Any]], episode: int, rate_hz: float) -> Any:
    """A row per sample; ``index`` and ``task_index`` are 0 until all episodes are known."""
    arrow = importlib.import_module("pyarrow")
    count = len(next(iter(columns.values())))
    table = {name: _vectors(arrow, values) for name, values in columns.items()}
    table["timestamp"] = arrow.array((np.arange(count) / rate_hz).astype(np.float32))
    whole = {"frame_index": np.arange(count), "episode_index": np.full(count, episode)}
    whole |= {"index": np.zeros(count), "task_index": np.zeros(count)}
    table |= {name: arrow.array(values.astype(np.int64)) for name, values in whole.items()}
    return arrow.table(table)


def _vectors(arrow: Any, values: NDArray[Any]) -> Any:
    """One number per row where that is all, else lists of fixed length."""
    flat = arrow.array(np.ascontiguousarray(values).reshape(-1))
    return flat if values.shape[1] == 1 else arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])


def task_table(tasks: Sequence[str]) -> Any:
    """Tasks as the index of a data frame, with their numbers."""
    arrow = importlib.import_module("pyarrow")
    table = arrow.table({"task_index": arrow.array(range(len(tasks)), arrow.int64()), "task": arrow.array(tasks)})
    columns = [_pandas_column("task_index", "int64", "int64"), _pandas_column("task", "unicode", "object")]
    names = [_pandas_column(None, "unicode", "object")]
    pandas = {"index_columns": ["task"], "column_indexes": names, "columns": columns, "pandas_version": "2.0.0"}
    return table.replace_schema_metadata({"pandas": json.dumps(pandas)})


def _pandas_column(name: str | None, kind: str, numpy_kind: str) -> dict[str, str | None]:
    return {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy_kind, "metadata": None}


def episode_table(rows: Sequence[dict[str, Any]], video_keys: Sequence[str], rate_hz: float, per_chunk: int) -> Any:
    """A row per episode: its length, what it came to, its files, its statistics."""
    table: dict[str, list[Any]] = {}
    begin = 0
    for number, one in enumerate(rows):
        place = {"chunk_index": number // per_chunk, "file_index": number % per_chunk}
        row = {
            "episode_index": number,
            "tasks": [one["task"]],
            "length": one["length"],
            **one.get("facts", {}),
            **{f"data/{key}": value for key, value in place.items()},
            "dataset_from_index": begin,
            "dataset_to_index": begin + one["length"],
        }
        for key in video_keys:
            row |= {f"videos/{key}/{name}": value for name, value in place.items()}
            row |= {f"videos/{key}/from_timestamp": 0.0, f"videos/{key}/to_timestamp": one["length"] / rate_hz}
        row |= {f"stats/{key}/{name}": value for key, stats in one["stats"].items() for name, value in stats.items()}
        row |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
        begin += one["length"]
        for key, value in row.items():
            table.setdefault(key, []).append(value)
    return importlib.import_module("pyarrow").table(table)


# -- statistics ---------------------------------------------------------------------------------------------------


def feature_stats(values: NDArray[Any]) -> Stats:
    """Of every column."""
    numbers = values.astype(np.float64)
    return {
        "min": numbers.min(axis=0).tolist(),
        "max": numbers.max(axis=0).tolist(),
        "mean": numbers.mean(axis=0).tolist(),
        "std": numbers.std(axis=0).tolist(),
        "count": [len(numbers)],
        **{name: np.quantile(numbers, at, axis=0).tolist() for name, at in _QUANTILES.items()},
    }


class PictureStats:
    """Of the colours of pictures, from 0 to 1, each as (3, 1, 1)."""

    def __init__(self) -> None:
        self._kept: list[NDArray[np.uint8]] = []
        self._seen, self._step = 0, 1

    def add(self, picture: NDArray[np.uint8]) -> None:
        """One more; when there are too many, every other one is let go of."""
        if self._seen % self._step == 0:
            self._kept.append(picture[::_PIXELS_APART, ::_PIXELS_APART].copy())
        self._seen += 1
        if len(self._kept) > _PICTURES_KEPT:
            self._kept, self._step = self._kept[::2], 2 * self._step

    def figures(self) -> Stats:
        """The statistics of what was kept."""
        stats = feature_stats(np.concatenate([one.reshape(-1, 3) for one in self._kept]) / 255.0)
        shaped = {name: [[[one]] for one in value] for name, value in stats.items() if name != "count"}
        return {**shaped, "count": [len(self._kept)]}


def merged(episodes: Sequence[dict[str, Stats]]) -> dict[str, Stats]:
    """The statistics of all episodes together; quantiles are means, weighted by length."""
    return {key: _merged([one[key] for one in episodes]) for key in episodes[0]}


def _merged(parts: Sequence[Stats]) -> Stats:
    arrays = {name: np.array([one[name] for one in parts], np.float64) for name in parts[0]}
    counts = arrays["count"][:, 0]
    weights = (counts / counts.sum()).reshape(-1, *(1,) * (arrays["mean"].ndim - 1))
    mean = (weights * arrays["mean"]).sum(axis=0)
    spread = (weights * (arrays["std"] ** 2 + (arrays["mean"] - mean) ** 2)).sum(axis=0)
    return {
        "min": arrays["min"].min(axis=0).tolist(),
        "max": arrays["max"].max(axis=0).tolist(),
        "mean": mean.tolist(),
        "std": np.sqrt(spread).tolist(),
        "count": [int(counts.sum())],
        **{name: (weights * arrays[name]).sum(axis=0).tolist() for name in _QUANTILES},
    }
