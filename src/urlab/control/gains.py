"""The payload of a streamed ``set_gains``, as a patch for `Controller.configure`."""

from typing import Any

from urlab.control.pd_gains import DEFAULTS
from urlab.errors import BadValue, known
from urlab_wire.codec import DecodeError, decode


def gains_patch(payload: bytes) -> dict[str, dict[str, Any]]:
    """Turn ``{joint: {"kp": .., "kv": .., "torque_limit": ..}}`` (UTF-8 JSON) into ``{"kp": {joint: ..}, ...}``.

    Joints and values are the controller's to judge; a payload of another shape raises `BadValue`.
    """
    patch: dict[str, dict[str, Any]] = {}
    for joint, gains in _decoded(payload).items():
        if not isinstance(gains, dict):
            raise BadValue(f"set_gains[{joint!r}] is {gains!r}, expected an object with {known(DEFAULTS)}")
        for gain, value in gains.items():
            if gain not in DEFAULTS:
                raise BadValue(f"set_gains[{joint!r}] has no {gain!r}; the gains are {known(DEFAULTS)}")
            patch.setdefault(gain, {})[joint] = value
    return patch


def _decoded(payload: bytes) -> dict[str, Any]:
    try:
        return decode(payload)
    except DecodeError as error:
        raise BadValue(f"set_gains takes a JSON object of joints: {error}") from error
