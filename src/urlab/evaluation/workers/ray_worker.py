"""A worker on an actor of a Ray cluster: what `WorkerProcess` is on this machine.

The evidence of an episode is written where the worker is, to the folder that the server names. So the folder of results
is one that all machines of the cluster share.
"""

import asyncio
from typing import Any, Self

from urlab import ray_actors
from urlab.evaluation.workers.messages import PipeBroken, WorkerFrame, WorkerSettings, decode_message, encode_message
from urlab.evaluation.workers.process import NoAnswer


class RayWorker:
    """Made by `start`; Ray starts its actor in its own time. One request at a time, on the event loop."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._actor = ray_actors.start_actor(_WorkerActor, encode_message(settings))
        self._death = "its actor was ended"

    @classmethod
    async def start(cls, settings: WorkerSettings) -> Self:
        """A new actor, on any machine of the cluster that is connected."""
        return await asyncio.to_thread(cls, settings)

    async def request(self, frame: WorkerFrame, limit_s: float) -> WorkerFrame:
        """The answer; PipeBroken if the actor ends before, NoAnswer if it takes too long.

        After anything but an answer it must be killed.
        """
        call = self._actor.answer.remote(encode_message(frame.message), bytes(frame.body))
        try:
            message, body = await asyncio.wait_for(asyncio.wrap_future(call.future()), limit_s)
        except TimeoutError as late:
            raise NoAnswer from late
        except ray_actors.actor_death() as died:
            self._death = str(died).splitlines()[0]
            raise PipeBroken from died
        return WorkerFrame(decode_message(message), body)

    async def end(self, grace_s: float) -> None:
        """Let it finish its files, then end it in any case. No request may be under way."""
        try:
            await asyncio.wait_for(asyncio.wrap_future(self._actor.close.remote().future()), grace_s)
        except (TimeoutError, ray_actors.actor_death()):
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        """End it now; a request that waits for its answer gets PipeBroken. May be called twice."""
        ray_actors.kill_actor(self._actor)

    async def how_it_died(self) -> str:
        """For when a request got PipeBroken."""
        return self._death


class _WorkerActor:
    """Lives on the cluster. Messages are bytes, as in the pipe of a process."""

    def __init__(self, settings: bytes) -> None:
        from urlab.evaluation.workers.worker import Worker  # simulates and draws, which the server does not

        self._worker = Worker(decode_message(settings))

    def answer(self, message: bytes, body: bytes) -> tuple[bytes, bytes]:
        answered: Any = self._worker.answer(WorkerFrame(decode_message(message), body))
        return encode_message(answered.message), bytes(answered.body)

    def close(self) -> None:
        self._worker.close()
