"""The system holds which files a process may read: tried in processes of their own, as it is for good."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
from urlab.importing.reading_rights import read_only_below
if not read_only_below([Path(sys.argv[1])]):
    sys.exit("not held")
for path in sys.argv[2:]:
    try:
        print(open(path).read())
    except PermissionError:
        print("refused")
import wave
"""


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_nothing_but_the_folders_and_python_itself_is_read_by_any_name(tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out" / "file")
    inside = tmp_path / "in"
    ways = [inside / "file", inside / "link", inside / ".." / "out" / "file", f"/proc/self/root{tmp_path}/out/file"]
    done = run(inside, *ways)
    if "not held" in done.stderr:
        pytest.skip("this system cannot hold which files a process reads")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["in", "refused", "refused", "refused"], "")
