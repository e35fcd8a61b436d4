"""What other rooms may take from here."""

import subprocess
import sys

import pytest

import urlab.cameras


def test_everything_that_is_promised_is_there() -> None:
    assert (
        sorted(urlab.cameras.__all__)
        == urlab.cameras.__all__
        == [
            "CameraChannel",
            "Capture",
            "Frame",
            "GlThread",
            "PixelType",
            "SceneRenderer",
            "Shot",
            "effective_profile",
            "is_software",
            "segmentation_table",
            "shared_gl",
        ]
    )
    assert all(getattr(urlab.cameras, name).__name__ == name for name in urlab.cameras.__all__)


def test_what_is_not_promised_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"'urlab\.cameras' has no attribute 'Nonsense'"):
        _ = urlab.cameras.Nonsense


def test_asking_about_gl_loads_neither_mujoco_nor_gl() -> None:
    script = "import sys, urlab.cameras.gl_context; print({'mujoco', 'OpenGL'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
