"""Watch a simulation without taking it over: an observer may look, but not touch."""

import argparse
import time

from urlab_client import URLabClient, URLabRPCError

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--address", default="tcp://127.0.0.1")
options.add_argument("--step-port", type=int, default=5559)
where = options.parse_args()

with URLabClient(where.address, step_port=where.step_port, observer=True) as watcher:
    watcher.discover()
    for _ in range(3):
        status = watcher.sim.status()
        print(f"{status.state}: {status.sim_time:.3f} s simulated")
        time.sleep(0.1)
    try:
        watcher.reset()
    except URLabRPCError as refused:
        print(f"reset is refused: {refused.code}")
