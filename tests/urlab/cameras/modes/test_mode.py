"""The family of camera modes."""

import pytest

from urlab.cameras.frame import PixelType
from urlab.cameras.modes import RealMode, mode_kinds
from urlab_wire.enums import CameraMode


def test_every_mode_of_the_protocol_is_declared() -> None:
    assert mode_kinds() == set(CameraMode)


def test_a_mode_cannot_be_declared_twice() -> None:
    with pytest.raises(TypeError, match="camera mode 'real' is already RealMode"):
        type("Mine", (RealMode,), {}, kind=CameraMode.REAL, dtype=PixelType.BGRA8)
