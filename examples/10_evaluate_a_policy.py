"""A policy of your own, measured: a server with a task, a client that asks the policy, success with its uncertainty.

The policy closes a door without looking: the hand goes along places that it loads from a file, wherever the door is.
Server, loop and report are one command too, which takes any class with these methods:
``urlab eval run --policy examples/10_evaluate_a_policy.py:BlindSweep --tasks robotiq_close_door --report out.html``.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from urlab.evaluation import EvalClient, read_run, summarise, write_report

EPISODES, WORKER = 3, "0"
PLACES_M = [(0.40, -0.18, 0.40), (0.40, -0.18, 0.18), (0.43, 0.02, 0.18), (0.56, 0.14, 0.18)]  # in the base's frame
HAND_DOWN_WXYZ, CLOSED = (0.0, 0.924, 0.383, 0.0), (0.7853, 0.7853, -0.7853, -0.7853, -0.7853, -0.7853)


class BlindSweep:
    needs_cameras = False  # without pictures episodes are many times faster

    def __init__(self, checkpoint: str | None = None) -> None:
        self.places = np.array(PLACES_M) if checkpoint is None else np.load(checkpoint)

    def reset(self, observation: dict) -> None:
        begin, _ = observation["ee_pose_state"]
        legs = itertools.pairwise([begin, *self.places])
        self.path = np.concatenate([np.linspace(a, b, int(np.linalg.norm(b - a) / 0.005) + 2) for a, b in legs])

    def act(self, observation: dict) -> dict:
        place = self.path[min(observation["timestep"], len(self.path) - 1)]
        return {"control_type": "ee_pose", "action": (place, HAND_DOWN_WXYZ, CLOSED), "is_rel": False}

    def close(self) -> None:
        pass


def evaluate(policy: BlindSweep, url: str) -> None:
    """Episode after episode: the server begins the next one by itself, and has no observation after the last."""
    with EvalClient(url, [WORKER]) as client:
        observation = client.reset()[WORKER]["obs"]
        while observation is not None:
            if observation["reset"]:
                policy.reset(observation)
                print(f"{observation['instruction']:45}", end="")
            reply = client.step({WORKER: policy.act(observation)})[WORKER]
            if result := reply["episode_result"]:
                print(f"{'done' if result['sr'] else 'not done'} after {result['steps']} steps")
            observation = reply["obs"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        home, ready = Path(folder), Path(folder) / "ready.json"
        np.save(home / "sweep.npy", PLACES_M)
        job = ["--tasks", "robotiq_close_door", "--episodes", str(EPISODES), "--run-id", "blind", "--no-cameras"]
        where = ["--port", "0", "--ready-file", str(ready), "--results", folder, "--log-level", "warning"]
        server = subprocess.Popen([sys.executable, "-m", "urlab", "eval", "serve", *job, *where])
        try:
            while not ready.exists() and server.poll() is None:
                time.sleep(0.05)
            if not ready.exists():
                sys.exit("the evaluation server did not start; what it said is above")
            evaluate(BlindSweep(str(home / "sweep.npy")), json.loads(ready.read_text())["url"])
        finally:
            server.terminate()
            server.wait()

        run = read_run(home / "urlab" / "blind")
        found = summarise(run).overall
        low, high = (f"{100 * bound:.0f}" for bound in (found.interval.low, found.interval.high))
        print(f"{found.successes} of {found.episodes} doors closed; the 95 % interval of so few is {low} to {high} %")
        report = Path(sys.argv[1]) if len(sys.argv) > 1 else home / "report.html"
        write_report([run], report)
        print(f"report: {report.stat().st_size} bytes")
