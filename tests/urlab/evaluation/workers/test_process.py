"""The pipe between server and worker: a thread has the worker's end, an event loop the server's."""

import asyncio
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import uvloop

from urlab.evaluation.camera_config import CameraChoice
from urlab.evaluation.embodiments import ALOHA
from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.simulation.actions import Action, ArmTarget, ControlType
from urlab.evaluation.workers.messages import (
    Begin,
    Failed,
    Flush,
    PipeBroken,
    Step,
    Stop,
    WorkerAnswer,
    WorkerFrame,
    WorkerPipe,
    WorkerSettings,
)
from urlab.evaluation.workers.process import NoAnswer, WorkerProcess

_LIMIT_S = 20.0
Serve = Callable[[WorkerPipe], None]
QUESTION = WorkerFrame(Flush())


def _echo(end: WorkerPipe) -> None:
    try:
        while True:
            end.send(end.receive())
    except PipeBroken:
        return


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def talk(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Run a coroutine function with a server's end, against a worker's end in a thread."""

    def run(body: Callable[[WorkerProcess], Any], serve: Serve = _echo) -> Any:
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=_serve_and_close, args=(serve, theirs))
        thread.start()

        async def main() -> Any:
            end = await WorkerProcess.attach(subprocess.Popen(["sleep", "60"]), ours)
            try:
                return await asyncio.wait_for(body(end), _LIMIT_S)
            finally:
                end.kill()

        with asyncio.Runner(loop_factory=request.param) as runner:
            result = runner.run(main())
        thread.join(_LIMIT_S)
        assert not thread.is_alive()
        return result

    return run


def _serve_and_close(serve: Serve, end: socket.socket) -> None:
    with end:
        serve(WorkerPipe(end))


@pytest.mark.parametrize("size", [0, 1, (64 << 10) - 8, 64 << 10, (256 << 10) - 30, 256 << 10, 9 << 20])
def test_bodies_of_every_size_come_back_as_they_were(talk: Any, size: int) -> None:
    sent = WorkerFrame(Flush(), np.random.default_rng(size).bytes(size))
    small = WorkerFrame(Failed("no reason"), b"small")

    async def body(end: WorkerProcess) -> list[WorkerFrame]:
        return [await end.request(one, _LIMIT_S) for one in (sent, small, sent)]

    assert talk(body) == [sent, small, sent]


@pytest.mark.parametrize(
    "message",
    [
        WorkerSettings(cameras=True, privileged=False, videos=True),
        WorkerSettings(
            True, False, True, CameraChoice({"aloha": ALOHA.cameras}, {"top_camera": (224, 224)}, depth=False)
        ),
        Begin(3, 100, "urlab/a/b/003", "/results/a", BodyFormat.JSON),
        Step(
            (Action(ControlType.JOINT_POSITION, is_rel=True, joints=(0.1, -2.0)),),
            BodyFormat.MSGPACK,
            50,
            terminal=True,
        ),
        Step(
            (
                Action(
                    ControlType.EE_POSE,
                    is_rel=False,
                    arms=(ArmTarget((0.1, 0.2, 0.3), (1.0, 0.0, 0.0, 0.0), (0.04,)),),
                    base_motion=(0.1, 0.0, 90.0),
                ),
            ),
            BodyFormat.PICKLE,
            100,
        ),
        Stop(),
        WorkerAnswer(
            EpisodeResult("stack", "003", 0.5, False, 12, "step_limit", 50, "Stack it.", [[[1.0, 0.0]]]),
            3,
            ("no room",),
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_message_comes_back_as_it_was(talk: Any, message: Any) -> None:
    async def body(end: WorkerProcess) -> WorkerFrame:
        return await end.request(WorkerFrame(message), _LIMIT_S)

    assert talk(body) == WorkerFrame(message)


def test_an_answer_that_comes_in_pieces_is_put_together(talk: Any) -> None:
    message = msgspec.msgpack.encode(Failed("slowly"))
    whole = struct.pack("<QQ", len(message), 4) + message + b"body"

    def in_pieces(end: WorkerPipe) -> None:
        end.receive()
        for at in range(len(whole)):
            end._socket.sendall(whole[at : at + 1])
        with pytest.raises(PipeBroken):
            end.receive()

    async def body(end: WorkerProcess) -> Any:
        return await end.request(QUESTION, _LIMIT_S)

    assert talk(body, in_pieces) == WorkerFrame(Failed("slowly"), b"body")


def test_a_worker_that_goes_away_breaks_the_wait_and_what_is_asked_after(talk: Any) -> None:
    async def body(end: WorkerProcess) -> bool:
        for _ in range(2):
            with pytest.raises(PipeBroken):
                await end.request(QUESTION, _LIMIT_S)
        return end.send(QUESTION)

    assert talk(body, lambda end: end.receive()) is False


def test_a_worker_that_takes_too_long_is_waited_for_no_longer(talk: Any) -> None:
    async def body(end: WorkerProcess) -> None:
        with pytest.raises(NoAnswer):
            await end.request(QUESTION, 0.01)

    def hang(end: WorkerPipe) -> None:
        end.receive()
        with pytest.raises(PipeBroken):
            end.receive()

    talk(body, hang)


def test_half_an_answer_is_none(talk: Any) -> None:
    def half(end: WorkerPipe) -> None:
        end.receive()
        end._socket.sendall(struct.pack("<QQ", 100, 0) + b"abc")

    async def body(end: WorkerProcess) -> None:
        with pytest.raises(PipeBroken):
            await end.request(QUESTION, _LIMIT_S)

    talk(body, half)


def test_killing_breaks_the_wait_on_both_ends(talk: Any) -> None:
    is_broken = threading.Event()

    def wait(end: WorkerPipe) -> None:
        try:
            while True:
                end.receive()
        except PipeBroken:
            is_broken.set()

    async def body(end: WorkerProcess) -> None:
        asyncio.get_running_loop().call_soon(end.kill)
        with pytest.raises(PipeBroken):
            await end.request(QUESTION, _LIMIT_S)

    talk(body, wait)
    assert is_broken.is_set()


def test_a_server_does_not_wait_for_a_worker_that_does_not_read(talk: Any) -> None:
    has_asked = threading.Event()

    def late(end: WorkerPipe) -> None:
        assert has_asked.wait(_LIMIT_S)
        end.send(WorkerFrame(WorkerAnswer(executed=len(end.receive().body))))
        with pytest.raises(PipeBroken):
            end.receive()

    async def body(end: WorkerProcess) -> Any:
        asyncio.get_running_loop().call_soon(has_asked.set)
        return await end.request(WorkerFrame(Flush(), bytes(9 << 20)), _LIMIT_S)

    assert talk(body, late).message.executed == 9 << 20
