"""What a server and a client connected through shared memory cost while nobody asks anything."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from urlab.cli.bench.spawn import Server, serving
from urlab.cli.bench.stepping import Tick
from urlab.cli.bench.timing import repeat
from urlab.cli.bench.transports.plan import TransportsPlan, scene_targets
from urlab.cli.bench.transports.results import IdleResult
from urlab.cli.bench.transports.shm_client import connect_shm

_BURST = 200
_SETTLE_S = 0.5


def measure_idle(plan: TransportsPlan, tick: Tick) -> IdleResult:
    """Two states, one after the other. This process is the client's."""
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        with serving(scene_targets(plan.main_scene, Path(folder))) as server:
            # It says direct and does not ask for it: a client that is in live mode subscribes to the state.
            with connect_shm(server.step_endpoint, auto_promote_step_mode=False) as connected:
                client = connected.client
                tick(f"live and paused for {plan.idle_s:g} s")
                client.runtime.set_paused(True)
                paused = _watch(server, plan.idle_s)
                tick(f"direct for {plan.idle_s:g} s")
                client.runtime.set_paused(False)
                client.runtime.set_mode("direct")
                repeat(client.step, _BURST)
                direct = _watch(server, plan.idle_s)
                connected.check()
    return IdleResult(
        scene=plan.main_scene,
        watched_s=plan.idle_s,
        paused_server_percent=paused[0],
        paused_client_percent=paused[1],
        direct_server_percent=direct[0],
        direct_client_percent=direct[1],
    )


def _watch(server: Server, seconds: float) -> tuple[float, float]:
    """Percent of one core, the server's and this process's."""
    time.sleep(_SETTLE_S)
    begin, far, own = time.perf_counter(), server.cpu_s, time.process_time()
    time.sleep(seconds)
    took = time.perf_counter() - begin
    return 100 * (server.cpu_s - far) / took, 100 * (time.process_time() - own) / took
