"""The family of camera modes."""

import pytest

from urlab.cameras.modes import declared_modes
from urlab.cameras.modes.real import RealMode
from urlab_wire.enums import CameraMode


def test_every_mode_of_the_protocol_is_declared() -> None:
    assert declared_modes() == set(CameraMode)


def test_a_mode_cannot_be_declared_twice() -> None:
    with pytest.raises(TypeError, match="camera mode 'real' is already RealMode"):
        type("Mine", (RealMode,), {}, kind=CameraMode.REAL)
