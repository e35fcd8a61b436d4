"""What the numbers were measured on."""

import os
import platform
from pathlib import Path

import mujoco
import numpy as np
import psutil
import zmq

from urlab import __version__
from urlab.cli.bench.results import Machine

_GB = 1e9


def load() -> float:
    """The load average of the last minute; 0 where the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def describe_machine(load_before: float) -> Machine:
    """This machine, now."""
    return Machine(
        cpu=_cpu_model(),
        cores=psutil.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / _GB, 1),
        system=platform.platform(),
        versions={
            "python": platform.python_version(),
            "mujoco": mujoco.__version__,
            "numpy": np.__version__,
            "pyzmq": zmq.__version__,
            "libzmq": zmq.zmq_version(),
            "urlab": __version__,
        },
        load_before=load_before,
        load_after=load(),
    )


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
