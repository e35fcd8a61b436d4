"""Servers that are killed at random moments while they record to a file: what is left, and how much is lost.

``URLAB_KILLS`` is how many; five hundred take a quarter of an hour.
"""

import os
import random
import signal
import struct
import subprocess
import sys
import time
import traceback
from pathlib import Path

import mcap.reader
import numpy as np
import pytest

import urlab
from urlab.recording import read_recording

KILLS = int(os.environ.get("URLAB_KILLS", "500"))
LONGEST_S = 2.0
LOST_AT_MOST_S = 1.0
ROBOT = """
<mujoco model="arm"><option timestep="0.002"/><worldbody>
  <body name="link"><joint name="hinge"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body>
</worldbody><actuator><position name="turn" joint="hinge" kp="5"/></actuator>
<sensor><jointpos name="angle" joint="hinge"/></sensor></mujoco>
"""
_REPORT = struct.Struct("<dQ")

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]


def record(model: Path, path: Path, report: int) -> None:
    """Record for ever, telling after every few steps when so many frames were captured."""
    with urlab.launch(model, project=path.parent / "project") as client:
        client.recording.start("ep", path=path)
        frames = 0
        os.write(report, _REPORT.pack(time.monotonic(), 0))
        while True:
            client.step(4)
            frames += 4
            os.write(report, _REPORT.pack(time.monotonic(), frames))
            time.sleep(0.004)


def killed(model: Path, path: Path, after_s: float) -> list[tuple[float, int]]:
    """What a process told before it was killed, ``after_s`` after its recording had begun; last the kill itself."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            record(model, path, writer)
        except BaseException:  # noqa: BLE001 - the process ends here, and nothing else would tell
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writer)
    told = os.read(reader, _REPORT.size)
    assert told, "the server did not begin to record; its own words are above"
    time.sleep(after_s)
    at = time.monotonic()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as rest:
        told += rest.read()
    whole = len(told) // _REPORT.size * _REPORT.size
    return [*_REPORT.iter_unpack(told[:whole]), (at, -1)]


def kill_many(folder: Path, kills: int) -> None:
    """Kill so many servers, and look at what each leaves."""
    model, chance = folder / "arm.xml", random.Random(0)
    model.write_text(ROBOT)
    lost_s = []
    for number in range(kills):
        path = folder / f"{number}.mcap"
        *told, (at, _) = killed(model, path, chance.uniform(0.0, LONGEST_S))
        with path.open("rb") as file:
            others = sum(1 for _ in mcap.reader.make_reader(file).iter_messages(topics=["/joint_states"]))
        if others:
            recording = read_recording(path)
            assert recording.frame_count == others
            np.testing.assert_allclose(recording.times, 0.002 * np.arange(1, others + 1), atol=1e-9)
        lost_s.append(at - max(when for when, frames in told if frames <= others))
        assert lost_s[-1] < LOST_AT_MOST_S, f"kill {number}: {others} of {told[-1][1]} frames are there"
        path.unlink()
    print(f"{kills} kills; seconds lost: at most {max(lost_s):.3f}, mean {np.mean(lost_s):.3f}")


def test_a_killed_server_leaves_a_file_that_can_be_read_and_lacks_less_than_a_second(tmp_path: Path) -> None:
    """In a process of its own, which has no threads when it forks."""
    command = [sys.executable, __file__, str(tmp_path), str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)


if __name__ == "__main__":
    kill_many(Path(sys.argv[1]), int(sys.argv[2]))
