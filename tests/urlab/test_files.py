import contextlib
import os
import subprocess
import sys

import pytest

from urlab.errors import PathNotWritable
from urlab.files import replacing


def write(path, data=b"new"):
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def as_ordinary_user():
    """Root may write everywhere, so it stops being root for a while."""
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)


def run(code, path):
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60)


def test_it_writes_and_leaves_nothing_else(tmp_path):
    write(tmp_path / "a.json")
    write(tmp_path / "a.json", b"newer")
    assert (tmp_path / "a.json").read_bytes() == b"newer"
    assert len(list(tmp_path.iterdir())) == 1


def test_missing_folders_are_made(tmp_path):
    write(tmp_path / "x" / "y" / "a.json")
    assert (tmp_path / "x" / "y" / "a.json").read_bytes() == b"new"


@pytest.mark.parametrize("problem", [ValueError("boom"), KeyboardInterrupt()])
def test_a_failure_in_the_block_leaves_the_old_file_and_no_trace(tmp_path, problem):
    write(tmp_path / "a.json", b"old")

    def fail_half_way():
        with replacing(tmp_path / "a.json") as file:
            file.write(b"half")
            raise problem

    with pytest.raises(type(problem)):
        fail_half_way()
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"old"]


def test_a_failure_removes_the_folders_that_were_made(tmp_path):
    with pytest.raises(ValueError, match="boom"), replacing(tmp_path / "x" / "y" / "a.json"):
        raise ValueError("boom")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(PathNotWritable, match="folder") as refusal:
        write(tmp_path)
    assert refusal.value.absolute_path == str(tmp_path)


def test_a_device_is_refused_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PathNotWritable, match="not a regular file"):
        write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PathNotWritable, match="Not a directory"):
        write(tmp_path / "file" / "a.json")


def test_a_folder_without_permission_is_told(tmp_path):
    tmp_path.chmod(0o555)
    with as_ordinary_user(), pytest.raises(PathNotWritable, match="Permission denied"):
        write(tmp_path / "a.json")
    tmp_path.chmod(0o755)
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_too_long_is_told(tmp_path):
    with pytest.raises(PathNotWritable, match="too long"):
        write(tmp_path / f"{'a' * 300}.json")
    assert not list(tmp_path.iterdir())


def test_running_out_of_space_leaves_the_old_file_and_no_trace(tmp_path):
    write(tmp_path / "a.json", b"old")
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from urlab.errors import PathNotWritable\n"
        "from urlab.files import replacing\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    with replacing(Path(sys.argv[1])) as file:\n"
        "        file.write(bytes(1 << 22))\n"
        "except PathNotWritable as problem:\n"
        "    print(problem)\n"
    )
    result = run(code, tmp_path / "a.json")
    assert "File too large" in result.stdout
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"old"]


def test_a_crash_before_the_replacement_leaves_the_old_file(tmp_path):
    write(tmp_path / "a.json", b"old")
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from urlab.files import replacing\n"
        "Path.replace = lambda *_: os._exit(9)\n"
        "with replacing(Path(sys.argv[1])) as file:\n"
        "    file.write(b'new')\n"
    )
    assert run(code, tmp_path / "a.json").returncode == 9
    assert (tmp_path / "a.json").read_bytes() == b"old"
