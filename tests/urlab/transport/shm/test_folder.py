"""The folder of a server's regions: private, and reclaimed when its owner was killed."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from urlab.transport.shm.folder import ShmFolder, ShmUnavailable, reclaim
from urlab_wire.shm import OWNER_FILE, Region

OWNER = """
import sys, time
from pathlib import Path
from urlab.transport.shm.folder import ShmFolder
folder = ShmFolder(Path(sys.argv[1]))
folder.make_region("req.shm", 4096, 2)
print(folder.path, flush=True)
time.sleep(60)
"""


@pytest.fixture
def killed_owner(tmp_path):
    """The folder of a process that was killed."""
    with subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
        path = Path(child.stdout.readline().strip())
        assert reclaim(tmp_path) == []
        child.send_signal(signal.SIGKILL)
    return path


def test_nobody_else_may_look_into_the_folder(tmp_path):
    folder = ShmFolder(tmp_path)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    folder.close()


def test_a_region_is_there_for_others_and_goes_with_its_folder(tmp_path):
    folder = ShmFolder(tmp_path)
    region = folder.make_region("state.shm", 1000, 4)
    assert stat.S_IMODE(region.path.stat().st_mode) == 0o600
    region.region.write(b"hello")
    seen = Region(region.path.read_bytes())
    assert (seen.stride, seen.n_buffers, seen.read(0)) == (1000, 4, (1, b"hello"))
    region.close()
    assert sorted(one.name for one in folder.path.iterdir()) == [OWNER_FILE]
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_left_is_taken_away_by_the_next(tmp_path, killed_owner):
    assert (killed_owner / "req.shm").exists()
    folder = ShmFolder(tmp_path)
    assert list(tmp_path.iterdir()) == [folder.path]
    folder.close()


def test_a_living_server_and_what_is_not_ours_is_left_alone(tmp_path):
    living = ShmFolder(tmp_path)
    for name in ("somebody-else", "urlab-data", "urlab-0123456789abcdef.bak"):
        (tmp_path / name).mkdir()
    (tmp_path / "urlab-0123456789abcdee").write_text("a file of that name")
    assert reclaim(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 5
    living.close()


def test_files_of_other_kinds_are_not_removed_with_a_stale_folder(tmp_path, killed_owner):
    (killed_owner / "notes.txt").write_text("mine")
    reclaim(tmp_path)
    assert [one.name for one in killed_owner.iterdir()] == ["notes.txt"]


def test_a_folder_that_is_just_being_made_is_left_alone(tmp_path):
    (tmp_path / ".urlab-0123456789abcdef").mkdir()
    assert reclaim(tmp_path) == []
    os.utime(tmp_path / ".urlab-0123456789abcdef", (1, 1))
    assert len(reclaim(tmp_path)) == 1


def test_a_missing_root_is_told(tmp_path):
    with pytest.raises(ShmUnavailable, match="cannot be used: No such file or directory"):
        ShmFolder(tmp_path / "nowhere")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a tmpfs")
def test_a_full_tmpfs_is_told_and_nothing_is_left_of_the_region(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        folder = ShmFolder(small)
        with pytest.raises(ShmUnavailable, match=r"is full. Make room there .*--shm-size"):
            folder.make_region("rep.shm", 1 << 20, 2)
        assert [one.name for one in folder.path.iterdir()] == [OWNER_FILE]
        folder.close()
    finally:
        subprocess.run(["umount", small], check=True)
