"""Very many steps through shared memory: none may fail or hang, and neither side's memory may grow."""

from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from urlab.cli.bench.paths import restart
from urlab.cli.bench.soak import SERVER, growth, soak, soak_result
from urlab.cli.bench.spawn import serving
from urlab.cli.bench.stepping import Tick
from urlab.cli.bench.transports.plan import TransportsPlan, scene_targets
from urlab.cli.bench.transports.results import ShmSoakResult
from urlab.cli.bench.transports.shm_client import connect_shm

_CLIENT = "client"
_MB = 1e6


def measure_shm_soak(plan: TransportsPlan, tick: Tick) -> ShmSoakResult:
    """`TransportsPlan.soak_steps` calls of `client.step()`; a call that hangs ends in the client's time-out."""
    usage = psutil.Process()
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        with serving(scene_targets(plan.main_scene, Path(folder))) as server:
            with connect_shm(server.step_endpoint) as connected:
                restart(connected.client)
                looks = {SERVER: lambda: server.rss_mb, _CLIENT: lambda: float(usage.memory_info().rss) / _MB}
                log = soak(plan.soak_steps, connected.client.step, looks, tick)
                if not log.failed:
                    connected.check()
    growth_mb, per_100k = growth(log, _CLIENT)
    return ShmSoakResult(
        lockstep=soak_result(plan.main_scene, plan.soak_steps, log),
        client_rss_mb=log.rss_mb[_CLIENT],
        client_growth_mb=growth_mb,
        client_growth_mb_per_100k=per_100k,
    )
