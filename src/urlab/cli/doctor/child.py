"""Trying something that may crash or hang: in a child process, with a time limit."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """``text`` is what the child printed when it went well, else why it did not."""

    ok: bool
    text: str


def try_in_child(script: str, *, environment: Mapping[str, str] | None = None, timeout_s: float = 20.0) -> Outcome:
    """Run a Python script with this interpreter."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(False, f"no result within {timeout_s:g} s")
    if done.returncode == 0:
        return Outcome(True, done.stdout.strip())
    return Outcome(False, _reason(done.returncode, done.stderr))


def _reason(code: int, complaints: str) -> str:
    if code < 0:
        return f"crashed with {signal.Signals(-code).name}"
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {code}"
