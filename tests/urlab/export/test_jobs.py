"""Exports that run: in order, with progress, to their end or until they are cancelled."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab.errors import BadValue, NoViewport, RateLimited
from urlab.export.jobs import MAX_OF_CALLER, MAX_UNFINISHED, ExportJobs
from urlab_wire.enums import ExportState
from urlab_wire.errors import ErrorCode

PATIENCE_S = 20.0
OUT = Path("/nowhere/film.mp4")


@pytest.fixture
def jobs() -> Iterator[ExportJobs]:
    jobs = ExportJobs()
    yield jobs
    jobs.close()


class Held:
    """Work that has done one sample, and goes on when it is let."""

    def __init__(self) -> None:
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(self, advance) -> None:
        advance()
        self.began.set()
        assert self.go.wait(PATIENCE_S)
        advance()


def begin(jobs, work, total=2, caller=""):
    return jobs.begin("mp4", "ep.json", OUT, total, work, caller)


def test_an_export_tells_how_far_it_is(jobs):
    work = Held()
    job = begin(jobs, work)
    assert work.began.wait(PATIENCE_S)
    assert (job.state, job.done, job.total, job.is_unfinished) == (ExportState.RUNNING, 1, 2, True)
    assert not jobs.wait(job, 0)
    work.go.set()
    assert jobs.wait(job, PATIENCE_S)
    assert (job.state, job.done, job.failure, job.is_unfinished) == (ExportState.DONE, 2, None, False)
    assert jobs.find(job.id) is job


def test_exports_run_one_after_the_other(jobs):
    work, order = Held(), []
    first = begin(jobs, work)
    second = begin(jobs, lambda _: order.append(first.state))
    assert work.began.wait(PATIENCE_S)
    assert second.state is ExportState.WAITING
    work.go.set()
    assert jobs.wait(second, PATIENCE_S)
    assert order == [ExportState.DONE]
    assert [one.id for one in jobs.all()] == [first.id, second.id]


def test_a_running_export_is_cancelled_at_its_next_sample(jobs):
    work = Held()
    job = begin(jobs, work)
    assert work.began.wait(PATIENCE_S)
    assert job.cancel()
    work.go.set()
    assert jobs.wait(job, PATIENCE_S)
    assert (job.state, job.failure) == (ExportState.CANCELLED, None)
    assert not job.cancel(), "it has ended already"


def test_a_waiting_export_is_cancelled_before_it_begins(jobs):
    work, ran = Held(), []
    first = begin(jobs, work)
    second = begin(jobs, lambda _: ran.append(1))
    second.cancel()
    work.go.set()
    assert jobs.wait(second, PATIENCE_S)
    assert (first.state, second.state, ran) == (ExportState.DONE, ExportState.CANCELLED, [])


def test_a_failed_export_says_why_and_the_next_one_runs(jobs, caplog):
    def fail(advance) -> None:
        raise NoViewport("no GL here")

    def crash(advance) -> None:
        raise ZeroDivisionError("by nothing")

    failed, crashed, good = begin(jobs, fail), begin(jobs, crash), begin(jobs, lambda _: None)
    assert jobs.wait(good, PATIENCE_S)
    assert [one.state for one in (failed, crashed, good)] == [ExportState.FAILED, ExportState.FAILED, ExportState.DONE]
    assert (failed.failure.code, failed.failure.message) == (ErrorCode.NO_VIEWPORT, "no GL here")
    assert (crashed.failure.code, crashed.failure.message) == (
        ErrorCode.INTERNAL_ERROR,
        "ZeroDivisionError: by nothing",
    )
    assert "export-1 of ep.json failed: no GL here" in caplog.text


def test_only_so_many_wait(jobs):
    work = Held()
    for number in range(MAX_UNFINISHED):
        begin(jobs, work, caller=str(number))
    with pytest.raises(RateLimited, match="16 exports have not ended yet"):
        begin(jobs, work)
    work.go.set()
    assert jobs.wait(jobs.all()[-1], PATIENCE_S)
    begin(jobs, work)


def test_a_caller_with_many_that_wait_keeps_no_other_out(jobs):
    work = Held()
    for _ in range(MAX_OF_CALLER):
        begin(jobs, work, caller="ada")
    with pytest.raises(RateLimited, match="8 exports of yours have not ended yet"):
        begin(jobs, work, caller="ada")
    begin(jobs, work, caller="eve")
    work.go.set()


def test_old_exports_are_forgotten(jobs):
    for _ in range(100):
        assert jobs.wait(begin(jobs, lambda _: None), PATIENCE_S)
    assert [one.id for one in jobs.all()] == [f"export-{number}" for number in range(37, 101)]
    with pytest.raises(BadValue, match="there is no export 'export-1'; there are: export-"):
        jobs.find("export-1")


def test_closing_cancels_what_runs(jobs):
    work = Held()
    job = begin(jobs, work)
    assert work.began.wait(PATIENCE_S)
    work.go.set()
    jobs.close()
    assert job.state in (ExportState.CANCELLED, ExportState.DONE)
