import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from urlab.errors import PathNotWritable
from urlab.files import check_replaceable, owned_name, replacing, sweep
from urlab.paths import FileKind


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
        "os.rename = lambda *_, **__: os._exit(9)\n"
        "with replacing(Path(sys.argv[1])) as file:\n"
        "    file.write(b'new')\n"
    )
    assert run(code, tmp_path / "a.json").returncode == 9
    assert (tmp_path / "a.json").read_bytes() == b"old"


# -- files that clients name --------------------------------------------------------------------------------------

NOTE = FileKind("a note", ".txt", lambda head: head.startswith(b"note"))


def write_note(path, data=b"note: new"):
    with replacing(path, NOTE) as file:
        file.write(data)


def test_a_file_of_the_kind_is_replaced_and_any_other_is_kept(tmp_path):
    write_note(tmp_path / "deep" / "a.txt")
    write_note(tmp_path / "deep" / "a.txt", b"note: newer")
    assert (tmp_path / "deep" / "a.txt").read_bytes() == b"note: newer"
    (tmp_path / "deep" / "b.txt").write_text("not one")
    with pytest.raises(PathNotWritable, match="it exists and is not a note, so it is kept"):
        write_note(tmp_path / "deep" / "b.txt")
    assert (tmp_path / "deep" / "b.txt").read_text() == "not one"
    assert len(list((tmp_path / "deep").iterdir())) == 2


def test_what_would_be_kept_can_be_asked_before(tmp_path):
    check_replaceable(tmp_path / "new.txt", NOTE)
    check_replaceable(tmp_path / "no" / "folder" / "new.txt", NOTE)
    (tmp_path / "ours.txt").write_bytes(b"note: old")
    check_replaceable(tmp_path / "ours.txt", NOTE)
    (tmp_path / "theirs.txt").write_bytes(b"precious")
    (tmp_path / "link.txt").symlink_to(tmp_path / "ours.txt")
    (tmp_path / "door").symlink_to(tmp_path)
    for name, words in (("theirs.txt", "is not a note"), ("link.txt", "a link"), ("door/ours.txt", "is a link")):
        with pytest.raises(PathNotWritable, match=words):
            check_replaceable(tmp_path / name, NOTE)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["door", "link.txt", "ours.txt", "theirs.txt"]


def test_a_file_that_appears_while_another_is_written_is_kept(tmp_path):
    def meanwhile():
        with replacing(tmp_path / "a.txt", NOTE) as file:
            file.write(b"note: new")
            (tmp_path / "a.txt").write_text("precious")

    with pytest.raises(PathNotWritable, match="so it is kept"):
        meanwhile()
    assert (tmp_path / "a.txt").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("link", ["file", "folder"])
def test_links_are_not_followed(tmp_path, link):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("note: old")
    (tmp_path / "a.txt").symlink_to(tmp_path / "out" / "a.txt")
    (tmp_path / "door").symlink_to(tmp_path / "out")
    with pytest.raises(PathNotWritable, match="link"):
        write_note(tmp_path / ("a.txt" if link == "file" else "door/b.txt"))
    assert (tmp_path / "out" / "a.txt").read_text() == "note: old"
    assert len(list((tmp_path / "out").iterdir())) == 1


SWAPS = """
import os, sys
place, outside = sys.argv[1:]
print("ready", flush=True)
while True:
    os.symlink(outside, place + ".new")
    os.rename(place, place + ".old")
    os.rename(place + ".new", place)
    os.unlink(place)
    os.rename(place + ".old", place)
"""


def test_a_folder_that_turns_into_a_link_all_the_time_never_leads_a_save_out(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    saved = number = 0
    command = [sys.executable, "-c", SWAPS, str(tmp_path / "in"), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout.readline() == b"ready\n"
            while number < 1000 or not saved:
                with contextlib.suppress(PathNotWritable):
                    write_note(tmp_path / "in" / f"{number}.txt")
                    saved += 1
                number += 1
        finally:
            swapper.kill()
    assert not list((tmp_path / "out").iterdir())


# -- left-overs ---------------------------------------------------------------------------------------------------

WRITES = """# preloaded
import sys, time
from pathlib import Path
from urlab.files import replacing
with replacing(Path(sys.argv[1])) as file:
    print("writing", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_is_swept_once_it_is_gone(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path / "a.json")], stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline() == b"writing\n"
            (part,) = tmp_path.iterdir()
            assert sweep([tmp_path]) == 0
            assert part.exists()
        finally:
            writer.kill()
    assert sweep([tmp_path, tmp_path / "missing"]) == 1
    assert not list(tmp_path.iterdir())


def test_nothing_but_left_overs_is_swept(tmp_path):
    gone = f"urlab-{2**22 + 1}-123-"
    kept = [f".{owned_name()}x.part", ".other.part", "a.json", f"{gone}x.part", f".{gone}x.json"]
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / f".{gone}x.part").touch()
    (tmp_path / f".{gone}link.part").symlink_to(tmp_path / "a.json")
    assert sweep([tmp_path]) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([*kept, f".{gone}link.part"])


def test_folders_of_work_are_swept_as_well(tmp_path):
    (tmp_path / "urlab-4194305-123-work-x" / "inner").mkdir(parents=True)
    (tmp_path / f"{owned_name()}work-x").mkdir()
    assert sweep([tmp_path], "urlab-*-work-*") == 1
    assert [one.name for one in tmp_path.iterdir()] == [f"{owned_name()}work-x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_what_another_user_left_is_not_swept(tmp_path):
    path = Path(tmp_path / ".urlab-4194305-123-x.part")
    path.touch()
    os.chown(path, 65534, -1)
    assert sweep([tmp_path]) == 0
