"""Ports, shared memory, folders, cores and timing."""

import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from urlab.cli.doctor.finding import Finding, Status
from urlab.config import Ports

SHM_DIR = Path("/dev/shm")
_SMALL_SHM_BYTES = 128 * 1024 * 1024
_MANY_CORES = 2
_NAP_S = 0.001
_NAPS = 30
_SLOPPY_S = 0.001


def check_ports() -> list[Finding]:
    """The default ports; a taken one is a warning, because another may be chosen."""
    ports = asdict(Ports())
    taken = {name: port for name, port in ports.items() if not _is_free(port)}
    findings = [
        Finding(
            f"port {port}",
            Status.WARNING,
            f"taken (--{name}-port)",
            f"stop who has it (is it a server? urlab ping), or choose another: --{name}-port 0 takes any free one",
        )
        for name, port in taken.items()
    ]
    free = ", ".join(str(port) for name, port in ports.items() if name not in taken)
    return [*findings, Finding("ports", Status.OK, f"{free} free")] if free else findings


def check_shared_memory() -> list[Finding]:
    """The folder for the shared-memory transport."""
    if sys.platform != "linux":
        return []
    if not _is_writable(SHM_DIR):
        return [Finding("shared memory", Status.WARNING, f"{SHM_DIR} is not writable", "clients use ZeroMQ instead")]
    usage = shutil.disk_usage(SHM_DIR)
    detail = f"{SHM_DIR}: {_mebibytes(usage.free)} of {_mebibytes(usage.total)} free"
    if usage.free < _SMALL_SHM_BYTES:
        return [Finding("shared memory", Status.WARNING, detail, "in a container: start it with --shm-size=1g")]
    return [Finding("shared memory", Status.OK, detail)]


def check_project(folder: str) -> list[Finding]:
    """The project folder, or the nearest folder above it that exists."""
    wanted = Path(folder).expanduser().resolve()
    existing = next(path for path in (wanted, *wanted.parents) if path.exists())
    if not existing.is_dir() or not _is_writable(existing):
        advice = f"choose another with --project DIR, or make {existing} a folder that you may write to"
        return [Finding("project folder", Status.PROBLEM, f"{wanted} is not writable", advice)]
    return [Finding("project folder", Status.OK, f"{wanted}{'' if existing == wanted else ' (will be created)'}")]


def check_cores() -> list[Finding]:
    """How many cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < _MANY_CORES:
        return [Finding("cores", Status.WARNING, f"{cores}", "live mode and cameras want two or more")]
    return [Finding("cores", Status.OK, f"{cores}")]


def check_timer() -> list[Finding]:
    """How much longer than asked a short sleep takes, which limits how evenly live physics runs."""
    late_s = statistics.median(_oversleep_s() for _ in range(_NAPS))
    resolution_s = time.get_clock_info("perf_counter").resolution
    detail = f"resolution {1e9 * resolution_s:.0f} ns, a sleep of 1 ms takes {1e3 * (_NAP_S + late_s):.2f} ms"
    if late_s > _SLOPPY_S:
        return [Finding("timer", Status.WARNING, detail, "live pacing will be uneven: give this machine less to do")]
    return [Finding("timer", Status.OK, detail)]


def _oversleep_s() -> float:
    begin = time.perf_counter()
    time.sleep(_NAP_S)
    return time.perf_counter() - begin - _NAP_S


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _is_writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _mebibytes(count: int) -> str:
    return f"{count // (1024 * 1024)} MiB"
