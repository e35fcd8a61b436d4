"""The folder of a server's regions: private, and reclaimed when its owner was killed."""

import fcntl
import mmap
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from urlab.transport.shm.folder import ShmFolder, ShmUnavailable, reclaim
from urlab_wire.shm import OWNER_FILE, Region

OWNER = """# preloaded
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
    assert (killed_owner / "req.shm").is_symlink()
    assert not (killed_owner / "req.shm").exists(), "its memory goes with the process"
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


@pytest.mark.parametrize("mtime", [1, 4_000_000_000])
def test_a_folder_that_is_just_being_made_is_left_alone_whatever_the_clock_says(tmp_path, mtime):
    unfinished = tmp_path / ".urlab-0123456789abcdef"
    unfinished.mkdir()
    os.utime(unfinished, (mtime, mtime))
    maker = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(maker, fcntl.LOCK_SH)
    assert reclaim(tmp_path) == []
    os.close(maker)
    assert reclaim(tmp_path) == [unfinished]


def test_another_user_that_keeps_the_root_locked_keeps_no_server_from_starting(tmp_path):
    stranger = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(stranger, fcntl.LOCK_EX)
    ShmFolder(tmp_path).close()
    os.close(stranger)


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path):
    precious = tmp_path / "elsewhere" / "state.shm"
    precious.parent.mkdir()
    precious.write_text("mine")
    (tmp_path / "urlab-0123456789abcdef").symlink_to(precious.parent)
    assert reclaim(tmp_path) == []
    assert precious.read_text() == "mine"


def test_links_in_a_stale_folder_are_removed_and_what_they_lead_to_is_left(tmp_path, killed_owner):
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    (killed_owner / "cam_x.shm").symlink_to(precious)
    assert reclaim(tmp_path) == [killed_owner]
    assert precious.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_the_folder_of_another_user_is_left_alone(tmp_path):
    folder = tmp_path / "urlab-0123456789abcdef"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    assert reclaim(tmp_path) == []


# -- what peers cannot do -----------------------------------------------------------------------------------------


def cut(path):
    os.truncate(path, 0)


def grow(path):
    os.truncate(path, 1 << 20)


def write_anew(path):
    path.write_bytes(b"")


def put_aside_its_end(path):
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.ftruncate(descriptor, 64)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("peers_write", [True, False])
@pytest.mark.parametrize("attack", [cut, grow, write_anew, put_aside_its_end])
def test_the_size_of_a_region_cannot_be_changed(tmp_path, attack, peers_write):
    folder = ShmFolder(tmp_path)
    region = folder.make_region("req.shm", 4096, 2, peers_write=peers_write)
    size = region.path.stat().st_size
    with pytest.raises(PermissionError):
        attack(region.path)
    assert region.path.stat().st_size == size
    region.region.write(b"still there")
    region.close()
    folder.close()


def test_only_its_server_writes_a_region_that_clients_read(tmp_path):
    folder = ShmFolder(tmp_path)
    region = folder.make_region("state.shm", 4096, 4)
    descriptor = os.open(region.path, os.O_RDWR)
    with pytest.raises(PermissionError):
        os.pwrite(descriptor, b"x", 64)
    with pytest.raises(PermissionError):
        mmap.mmap(descriptor, 0)
    os.close(descriptor)
    region.region.write(b"hello")
    assert Region(region.path.read_bytes()).read(0) == (1, b"hello")
    region.close()
    folder.close()


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_region_costs_one_descriptor_and_gives_it_back(tmp_path):
    folder = ShmFolder(tmp_path)
    before = descriptors()
    regions = [folder.make_region(f"{number}.shm", 4096, 2) for number in range(10)]
    assert descriptors() == before + 10
    for region in regions:
        region.close()
    assert descriptors() == before
    folder.close()


# -- no room ------------------------------------------------------------------------------------------------------


def test_regions_take_no_more_than_a_share_of_the_descriptors(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    folder = ShmFolder(tmp_path)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        regions = [folder.make_region(f"{number}.shm", 4096, 2) for number in range(100)]
        with pytest.raises(ShmUnavailable, match=r"at most 100 regions.*ulimit -n"):
            folder.make_region("one more.shm", 4096, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    regions.pop().close()
    regions.append(folder.make_region("again.shm", 4096, 2))
    assert len(regions) == 100
    for region in regions:
        region.close()
    folder.close()


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
