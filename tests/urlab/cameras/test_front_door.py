"""What other rooms may take from here."""

import subprocess
import sys

import pytest

import urlab.cameras

NAMES = (
    "GL_BACKENDS GL_INSTALL_LINE Capture Frame GlThread RenderRequest SceneCamera SceneRenderer effective_profile "
    "rendering segmentation_table shared_gl"
)


def test_every_name_of_the_front_door_is_there_and_others_are_refused() -> None:
    assert urlab.cameras.__all__ == NAMES.split()
    assert all(getattr(urlab.cameras, name) for name in NAMES.split())
    with pytest.raises(AttributeError, match=r"'urlab\.cameras' has no attribute 'Nonsense'"):
        _ = urlab.cameras.Nonsense


def test_asking_about_gl_loads_neither_mujoco_nor_gl() -> None:
    script = "import sys; from urlab.cameras import GL_BACKENDS; print({'mujoco', 'OpenGL'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
