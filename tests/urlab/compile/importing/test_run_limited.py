import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from urlab.compile.importing.limits import Limits
from urlab.compile.importing.run_limited import run_limited
from urlab.errors import ImportFailed

LIMITS = Limits(timeout_s=10, memory_bytes=512 << 20)
GONE_S = 10


def python(script: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", script]


def test_a_request_is_answered() -> None:
    script = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"
    assert run_limited(python(script), b"\x00hello", LIMITS) == b"olleh\x00"


def test_a_large_request_need_not_be_read() -> None:
    assert run_limited(python("print('done', end='')"), bytes(1 << 20), LIMITS) == b"done"


def test_noise_on_the_standard_error_does_not_matter() -> None:
    script = "import sys; sys.stderr.write('bad_alloc MemoryError' * 100_000); print(1, end='')"
    assert run_limited(python(script), b"", LIMITS) == b"1"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import os; os.abort()", r"crashed \(SIGABRT\)"),
        ("import ctypes; ctypes.string_at(1)", r"crashed \(SIGSEGV\)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"was killed \(SIGKILL\)"),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", "wanted more memory than the 512 MiB"),
        ("raise SystemExit(3)", "failed: exit code 3"),
        ("raise ValueError('this is why')", "failed: ValueError: this is why"),
    ],
)
def test_what_went_wrong_is_told(script: str, words: str) -> None:
    with pytest.raises(ImportFailed, match=words):
        run_limited(python(script), b"", LIMITS)


def test_a_child_that_hangs_is_stopped_with_its_own_children(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    script = f"import os, time; os.open({str(tmp_path / 'alive')!r}, os.O_WRONLY); os.fork(); time.sleep(1000)"
    with pytest.raises(ImportFailed, match=r"longer than the 0\.5 s"):
        run_limited(python(script), b"", Limits(timeout_s=0.5))
    assert select.select([reader], [], [], GONE_S)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_child_that_burns_time_is_stopped() -> None:
    with pytest.raises(ImportFailed, match=r"longer than the 0\.3 s"):
        run_limited(python("while True: pass"), b"", Limits(timeout_s=0.3))


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ImportFailed, match="No such file"):
        run_limited(["/no/such/command"], b"", LIMITS)


def test_a_child_that_writes_without_end_fills_no_disk() -> None:
    with pytest.raises(ImportFailed, match="File too large"):
        run_limited(python("import os\nwhile True: os.write(1, bytes(1 << 24))"), b"", LIMITS)


def test_a_child_works_in_a_folder_that_is_gone_afterwards() -> None:
    folder = Path(run_limited(python("import os; print(os.getcwd(), end='')"), b"", LIMITS).decode())
    assert folder.name.startswith("urlab-import-")
    assert not folder.exists()


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    child = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    script = (
        "from urlab.compile.importing.run_limited import run_limited\n"
        "from urlab.compile.importing.limits import Limits\n"
        f"run_limited({python(child)!r}, b'', Limits())"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(tmp_path)})
    child_pid = int((tmp_path / "pid").read_text())
    watched = os.pidfd_open(child_pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert select.select([watched], [], [], GONE_S)[0]
    os.close(watched)
