"""Observations that a worker has finished, as parts of replies in the same and in other languages."""

import pickle
from typing import Any

import msgspec
import numpy as np
import pytest

from urlab.evaluation.encoding import BodyFormat, EncodedObservation, decode, write_body

_READ = {
    BodyFormat.PICKLE: pickle.loads,
    BodyFormat.JSON: msgspec.json.decode,
    BodyFormat.MSGPACK: msgspec.msgpack.decode,
}


def _embedded(observation: Any, sent: BodyFormat, asked: BodyFormat, has_pictures: bool) -> Any:
    data = EncodedObservation.encode(observation, sent, has_pictures=has_pictures)
    return EncodedObservation(data, sent, has_pictures=has_pictures).embedded_in(asked)


@pytest.mark.parametrize("has_pictures", [False, True])
@pytest.mark.parametrize("asked", BodyFormat)
@pytest.mark.parametrize("sent", BodyFormat)
def test_an_observation_says_the_same_in_every_language(
    sent: BodyFormat, asked: BodyFormat, has_pictures: bool
) -> None:
    joints = np.linspace(-1.0, 1.0, 9, dtype=np.float32)
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    observation = {"timestep": 3, "joints": joints, "rgb": {"a": picture, "b": picture}, "pose": [joints[:3]]}
    part = _embedded(observation, sent, asked, has_pictures)
    reply: Any = decode(_READ[asked](write_body({"0": {"obs": part, "metric": None}}, asked)))
    seen = reply["0"]["obs"]
    assert (reply["0"]["metric"], seen["timestep"]) == (None, 3)
    for found, expected in ((seen["joints"], joints), (seen["rgb"]["b"], picture), (seen["pose"][0], joints[:3])):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("has_pictures", [False, True])
@pytest.mark.parametrize("body_format", [BodyFormat.JSON, BodyFormat.PICKLE])
def test_array_data_is_text_where_bytes_would_not_be_read(body_format: BodyFormat, has_pictures: bool) -> None:
    part = _embedded({"joints": np.zeros(2)}, BodyFormat.MSGPACK, body_format, has_pictures)
    assert part["joints"]["data"] == "AAAAAAAAAAAAAAAAAAAAAA=="
