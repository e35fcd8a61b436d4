"""Drawing without a screen: a tiny picture with each of MuJoCo's off-screen backends."""

import os
import sys

from urlab.cameras import GL_BACKENDS, GL_INSTALL_LINE
from urlab.cli.doctor.child import Outcome, try_in_child
from urlab.cli.doctor.finding import Finding, Status

_SOFTWARE = ("llvmpipe", "softpipe", "swrast")
_PROBE = """
import mujoco
from OpenGL import GL
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><light pos='0 0 3'/><geom size='1' rgba='1 1 1 1'/></worldbody></mujoco>"
)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = mujoco.Renderer(model, 16, 16)
renderer.update_scene(data)
assert renderer.render().max() > 0, "the picture is black"
print(GL.glGetString(GL.GL_RENDERER).decode())
renderer.close()
"""


def check() -> list[Finding]:
    """A finding per backend. One that works is enough, and none is a warning: only cameras need it."""
    if sys.platform != "linux":
        return []
    outcomes = {name: try_in_child(_PROBE, environment={"MUJOCO_GL": name}) for name in GL_BACKENDS}
    any_works = any(outcome.ok for outcome in outcomes.values())
    return [_finding(name, outcome, any_works) for name, outcome in outcomes.items()] + _chosen(outcomes)


def _finding(name: str, outcome: Outcome, any_works: bool) -> Finding:
    label = f"graphics {name}"
    if outcome.ok:
        kind = "software rendering" if outcome.text.startswith(_SOFTWARE) else "hardware rendering"
        return Finding(label, Status.OK, f"{outcome.text} ({kind})")
    if any_works:
        return Finding(label, Status.NOTE, f"does not work: {outcome.text}", f"if you want it: {GL_INSTALL_LINE}")
    return Finding(label, Status.WARNING, f"does not work, so no cameras: {outcome.text}", GL_INSTALL_LINE)


def _chosen(outcomes: dict[str, Outcome]) -> list[Finding]:
    asked = os.environ.get("MUJOCO_GL", "").strip().lower()
    if asked in outcomes and not outcomes[asked].ok:
        working = [name for name, outcome in outcomes.items() if outcome.ok]
        advice = f"unset MUJOCO_GL, or set it to {working[0]}" if working else GL_INSTALL_LINE
        return [Finding("MUJOCO_GL", Status.WARNING, f"asks for {asked}, which does not work", advice)]
    return []
