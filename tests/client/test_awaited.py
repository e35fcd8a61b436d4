"""The asyncio client: the same names, awaited, on a thread of its own."""

import asyncio
import gc
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import urlab
from urlab_client import AsyncURLabClient, InProcessTransport, URLabClient, URLabRPCError
from urlab_wire.codec import decode, encode

PENDULUM = """
<mujoco model="pendulum">
  <option timestep="0.01"/>
  <worldbody>
    <body><joint name="pivot" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/></body>
  </worldbody>
  <actuator><motor name="pivot" joint="pivot"/></actuator>
</mujoco>
"""


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Any]:
    """Makes asyncio clients of embedded servers; all are closed in the end."""
    model = tmp_path / "pendulum.xml"
    model.write_text(PENDULUM)
    made: list[URLabClient] = []

    def start() -> AsyncURLabClient:
        made.append(urlab.launch(model, project=tmp_path / "project"))
        return AsyncURLabClient.of(made[-1])

    yield start
    for client in made:
        client.close()


def test_it_steps_as_the_plain_client_does(launch: Any) -> None:
    async def drive() -> tuple[float, list[float]]:
        async with launch() as client:
            client.articulations["pendulum"].set_ctrl({"pivot": 0.5})
            reply = await client.step(10)
            assert client.step_count == 10
            assert client.sim_time == reply["time"]
            assert (await client.sim.status()).mode == "direct"
            assert await client.recording.is_active is False
            assert await client.replay.active_session is None
            assert await client.latest_state is None
            return reply["time"], reply["per_articulation"]["pendulum"]["qpos"]

    plain = launch()._wrapped
    plain.articulations["pendulum"].set_ctrl({"pivot": 0.5})
    reply = plain.step(10)
    assert asyncio.run(drive()) == (reply["time"], reply["per_articulation"]["pendulum"]["qpos"])


def test_a_batch_is_stepped_as_the_plain_client_steps_it(launch: Any) -> None:
    orders = [[0.1], [0.2], [0.3]]

    async def drive() -> tuple[Any, ...]:
        async with launch() as client:
            heavy = {"kind": "body", "name": "*", "field": "mass", "distribution": "uniform", "low": 1, "high": 2}
            async with await client.batch(3, randomize={"heavy": heavy}) as batch:
                assert (batch.num, batch.n_setpoints, batch.timestep) == (3, 1, 0.01)
                assert await batch.reset(seeds=[1, 2, 3]) is batch
                assert await batch.step(orders, n_steps=20) is batch
                drawn = batch.qpos.tolist()
                stepped = await (await batch.reset()).step(orders, n_steps=20)
                moved = stepped.time.tolist(), stepped.qpos.tolist(), stepped.qvel.tolist(), stepped.sensordata.shape
                with pytest.raises(ValueError, match="expected"):
                    await batch.step([[1.0]])
            with pytest.raises(URLabRPCError, match="this session has no batch"):
                await batch.step()
            assert drawn != moved[1]
            return moved

    with launch()._wrapped.batch(3) as plain:
        plain.step(orders, n_steps=20)
        expected = plain.time.tolist(), plain.qpos.tolist(), plain.qvel.tolist(), plain.sensordata.shape
    assert asyncio.run(drive()) == expected


def test_steps_of_two_clients_are_awaited_together(launch: Any) -> None:
    async def drive() -> None:
        async with launch() as one, launch() as two:
            replies = await asyncio.gather(one.step(300), two.step(200), one.reset(), two.step(1))
            assert [round(reply["time"], 6) for reply in replies] == [3.0, 2.0, 0.0, 2.01]

    asyncio.run(drive())


def test_two_clients_work_at_the_same_time_and_the_loop_goes_on() -> None:
    both_wait, go_on = threading.Barrier(3, timeout=60), threading.Event()

    def slow(frame: bytes) -> bytes:
        request = decode(frame)
        if request["op"] == "hello":
            return encode({"op": "hello_ok", "session_id": "s", "manager_present": False, "articulations": []})
        if request["op"] == "current_level":
            both_wait.wait()
            assert go_on.wait(60)
        return encode({"op": f"{request['op']}_ok", "level_path": "/Game/Levels/x"})

    async def drive() -> None:
        one, two = (AsyncURLabClient(transport=InProcessTransport(slow)) for _ in range(2))
        async with one, two:
            await asyncio.gather(one.discover(), two.discover())
            asked = [asyncio.create_task(client.scene.current_level()) for client in (one, two)]
            await asyncio.to_thread(both_wait.wait)
            for _ in range(3):
                await asyncio.sleep(0)
            assert not any(task.done() for task in asked)
            go_on.set()
            assert await asyncio.gather(*asked) == ["/Game/Levels/x"] * 2

    asyncio.run(drive())


def test_cancelling_an_await_leaves_the_client_usable() -> None:
    begun, go_on = threading.Event(), threading.Event()
    served: list[str] = []

    def slow(frame: bytes) -> bytes:
        request = decode(frame)
        served.append(request["op"])
        if request["op"] == "hello":
            return encode({"op": "hello_ok", "session_id": "s", "manager_present": False, "articulations": []})
        if request["op"] == "current_level":
            begun.set()
            assert go_on.wait(60)
        return encode({"op": f"{request['op']}_ok", "level_path": "/Game/Levels/x", "state": "off"})

    async def drive() -> None:
        async with AsyncURLabClient(transport=InProcessTransport(slow)) as client:
            await client.discover()
            first = asyncio.create_task(client.scene.current_level())
            await asyncio.to_thread(begun.wait, 60)
            second = asyncio.create_task(client.scene.save_level())
            await asyncio.sleep(0)
            first.cancel()
            second.cancel()
            for task in (first, second):
                with pytest.raises(asyncio.CancelledError):
                    await task
            go_on.set()
            assert (await client.sim.status()).state == "off"
        assert served == ["hello", "meta", "current_level", "pie_status"], "what had not begun was left out"

    asyncio.run(drive())


def test_a_closed_client_says_so_and_its_thread_ends(launch: Any) -> None:
    async def drive() -> None:
        client = launch()
        await client.step()
        await client.close()
        await client.close()
        with pytest.raises(URLabRPCError, match="this client is closed"):
            await client.step()

    asyncio.run(drive())
    while any(one.name.startswith("urlab-async") for one in threading.enumerate()):
        pass


def test_a_dropped_client_ends_its_thread() -> None:
    async def drive() -> None:
        client = AsyncURLabClient()
        await client.run(int)
        assert any(one.name.startswith("urlab-async") for one in threading.enumerate())

    asyncio.run(drive())
    while any(one.name.startswith("urlab-async") for one in threading.enumerate()):
        gc.collect()  # the thread may still hold what it ran


def test_it_has_every_name_of_the_plain_client() -> None:
    plain, client = URLabClient(), AsyncURLabClient()
    names = [name for name in dir(plain) if not name.startswith("_")]
    assert [name for name in names if not hasattr(client, name)] == []
    for group in ("scene", "sim", "runtime", "outliner", "debug", "viewport", "recording", "replay"):
        for name, method in inspect.getmembers(getattr(plain, group), inspect.ismethod):
            if not name.startswith("_"):
                mine = getattr(getattr(client, group), name)
                assert inspect.signature(mine.func if hasattr(mine, "func") else mine) is not None
                listed = getattr(type(getattr(client, group)), name, None)
                if listed is not None:
                    assert inspect.iscoroutinefunction(listed), name
                    assert inspect.signature(listed) == inspect.signature(getattr(type(getattr(plain, group)), name))
                    assert listed.__doc__ == method.__doc__
    with pytest.raises(AttributeError, match="create_levl"):
        client.scene.create_levl  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="read-only"):
        client.step_mode = "live"  # type: ignore[misc, assignment]


def test_what_handles_ask_the_server_runs_on_the_worker(launch: Any) -> None:
    async def drive() -> str:
        async with launch() as client:
            return await client.run(lambda: threading.current_thread().name)

    assert asyncio.run(drive()).startswith("urlab-async")
