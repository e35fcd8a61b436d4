"""Ops that only read: answered from the published state, whoever has the simulation at the moment."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from urlab_wire import CATALOGUE

READING = [name for name, spec in CATALOGUE.items() if spec.reads and name != "step"]
"""An observer's step is in the list of what it may do; but it waits for its turn, as every step does."""


@contextmanager
def held(engine: Any) -> Iterator[None]:
    """Another thread has the simulation until the block ends."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with engine.locked():
            taken.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("op", READING)
def test_an_op_that_only_reads_waits_for_no_step(wire: Any, engine: Any, sample: Any, op: str) -> None:
    wire.ok("step", n_steps=2)
    fields = {"include_assets": True} if op == "hello" else sample(op)
    with held(engine()):
        wire.ok(op, **fields)


@pytest.mark.parametrize(
    ("op", "fields"),
    [("set_sim_options", {"options": {}}), ("configure_controller", {"articulation": "walker", "params": {}})],
)
def test_an_op_that_changes_nothing_this_time_waits_for_no_step_either(
    wire: Any, engine: Any, op: str, fields: Any
) -> None:
    before = wire.ok(op, **fields)
    with held(engine()):
        assert wire.ok(op, **fields) == before


@contextmanager
def long_step(wire: Any, engine: Any, n_steps: int) -> Iterator[None]:
    """A window of steps that stands in its second sub-step until the block ends."""
    inside, done = threading.Event(), threading.Event()
    begun = []

    def hook() -> None:
        begun.append(True)
        if len(begun) == 2:
            inside.set()
            done.wait()

    engine.pre_step.append(hook)
    thread = threading.Thread(target=wire.ok, args=("step",), kwargs={"n_steps": n_steps})
    thread.start()
    inside.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()
        engine.pre_step.remove(hook)


def test_while_a_long_window_runs_readers_get_the_state_before_it(
    wire: Any, engine: Any, stranger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> None:
        wire.ok("reset")
        wire.ok("set_mocap_pose", body="goal", pos=[1, 2, 3])
        for _ in range(10):
            wire.ok("step", n_steps=30)

    stranger.hello(observer=True)
    run()
    contacts, actors = stranger.ok("get_contacts"), stranger.ok("snapshot")["actors"]
    assert contacts["n_contacts"] > 0
    run()  # the same state again, which no reader has seen
    monkeypatch.setattr("urlab.manager.manager.STEP_TIME_LIMIT_S", 100.0)  # the window ends, however busy the machine
    with long_step(wire, engine(), n_steps=5000):
        assert stranger.ok("get_contacts") == contacts
        assert stranger.ok("snapshot")["actors"] == actors
        assert stranger.ok("read_mocap_pose", body="goal")["pos"] == [1, 2, 3]
