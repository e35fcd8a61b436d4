"""Processes that are forked from one that has launched a server, as pools of environments are."""

import subprocess
import sys
from pathlib import Path

import pytest

ARM = """
<mujoco model="arm"><worldbody><light pos="0 0 3"/><camera name="eye" pos="0 -2 1" xyaxes="1 0 0 0 .5 1"/>
  <body name="link" pos="0 0 1"><joint name="hinge" axis="0 1 0"/><geom size=".1" mass="1" pos=".2 0 0"/></body>
</worldbody><actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""

COMMON = """
import faulthandler, multiprocessing, os, sys, tempfile
from pathlib import Path
import urlab
from urlab_client import URLabRPCError

folder = Path(sys.argv[1])

def picture():
    with urlab.launch(folder / "arm.xml", project=folder / "project") as client:
        client.step(3)
        reply = client.step(include_cameras={"eye": "sync"})
        assert reply["step"] == 4
        return bytes(reply["cameras"]["eye"]["data"])

def in_fork(work):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(80, exit=True)
        work()
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, f"the child ended with {code}"

kept = urlab.launch(folder / "arm.xml", project=folder / "project")
kept.step(include_cameras={"eye": "sync"})
drawn = picture()
"""

CHILD_DRAWS = """
def work():
    assert picture() == drawn

in_fork(work)
assert picture() == drawn
assert kept.step()["step"] == 2
kept.close()
"""

POOL = """
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.starmap(picture, [(), ()]) == [drawn, drawn]
kept.close()
"""

INHERITED = """
def work():
    try:
        kept.step()
    except URLabRPCError as refused:
        assert "belongs to process" in str(refused), refused
    else:
        raise AssertionError("a client of the parent stepped")
    kept.close()

in_fork(work)
assert kept.step()["step"] == 2
kept.close()
"""

NOTHING_DRAWN_IN_THE_CHILD = """
in_fork(lambda: None)
kept.close()
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(CHILD_DRAWS, id="a child launches and draws"),
        pytest.param(POOL, id="workers of multiprocessing launch and draw"),
        pytest.param(INHERITED, id="the parent's client refuses in the child"),
        pytest.param(NOTHING_DRAWN_IN_THE_CHILD, id="a child that does nothing ends"),
    ],
)
def test_after_a_fork(script: str, tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(ARM, encoding="utf-8")
    command = [sys.executable, "-c", COMMON + script, str(tmp_path)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
