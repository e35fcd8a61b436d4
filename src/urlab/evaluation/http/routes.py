"""The endpoints. What is the sender's mistake becomes a `Problem`, and so a 4xx with a ``detail``."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response

from urlab.evaluation.http.desk import Desk
from urlab.evaluation.http.requests import flag, read_data, read_request, reply
from urlab.evaluation.http.schema import ACTIONS, CHUNK, JOB, LOAD, WORKER_DATA, WORKERS, describes
from urlab.evaluation.http.wire import Wire
from urlab.evaluation.problems import BadBody
from urlab.evaluation.worker_pool import check_worker_ids
from urlab.evaluation.worker_slot import Wanted

MAX_CHUNK = 10_000


def add_routes(app: FastAPI, desk: Desk) -> None:
    """All endpoints over one desk."""
    _add_worker_routes(app, desk)
    _add_step_routes(app, desk)
    _add_job_routes(app, desk)


def _add_worker_routes(app: FastAPI, desk: Desk) -> None:
    @app.post("/create_workers", openapi_extra=describes(WORKER_DATA))
    async def create_workers(request: Request) -> Response:
        """Announce workers; they start when they are reset."""
        data, wire = await read_data(request)
        desk.create(check_worker_ids(data.get("worker_ids")))
        return reply(_SUCCESS, wire)

    @app.post("/reset", openapi_extra=describes(WORKERS))
    async def reset(request: Request) -> Response:
        """Begin an episode with each worker and answer with the first observations."""
        body, wire = await read_request(request, Wire.PICKLE)
        return reply(await desk.reset(_worker_ids(body), _wanted(request, wire)), wire)

    @app.post("/reset_result", openapi_extra=describes(WORKERS))
    async def reset_result(request: Request) -> Response:
        """The current observations: resets are finished when they are answered."""
        body, wire = await read_request(request, Wire.PICKLE)
        return reply(await desk.look(_worker_ids(body), _wanted(request, wire)), wire)

    @app.post("/kill", openapi_extra=describes(WORKER_DATA))
    async def kill(request: Request) -> Response:
        """End workers; their unfinished episodes are free for others."""
        data, wire = await read_data(request)
        await desk.kill(check_worker_ids(data.get("worker_ids")))
        return reply(_SUCCESS, wire)


def _add_step_routes(app: FastAPI, desk: Desk) -> None:
    @app.post("/step", openapi_extra=describes(ACTIONS))
    async def step(request: Request) -> Response:
        """One action for each worker named; ``?terminal=1`` adds the last observation to an episode's result."""
        body, wire = await read_request(request, Wire.PICKLE)
        actions = _actions(body)
        return reply(await desk.step(actions, _wanted(request, wire)), wire)

    @app.post("/step_chunk", openapi_extra=describes(CHUNK))
    async def step_chunk(request: Request) -> Response:
        """Actions one after the other until they or an episode end; only the last state is observed."""
        body, wire = await read_request(request, Wire.PICKLE)
        chunk = _chunk(body)
        return reply(await desk.step_chunk(chunk, _wanted(request, wire)), wire)


def _add_job_routes(app: FastAPI, desk: Desk) -> None:
    @app.post("/start_new_job", openapi_extra=describes(JOB))
    async def start_new_job(request: Request) -> Response:
        """End all workers and start another job; a run_id with results goes on where it stopped."""
        data, wire = await read_data(request)
        await desk.start_job(data)
        return reply(_SUCCESS, wire)

    @app.post("/load_config", openapi_extra=describes(LOAD))
    async def load_config(request: Request) -> Response:
        """As /start_new_job, for one task."""
        data, wire = await read_data(request)
        await desk.load_config(data.get("config_path"))
        return reply(_SUCCESS, wire)

    @app.get("/status")
    async def status(request: Request) -> dict[str, Any]:
        """How far the job is; ``?refresh=1`` looks for results on disk first."""
        return {"data": await desk.status(refresh=flag(request, "refresh"))}


_SUCCESS = {"data": {"success": True}}
_BY_WORKER = "a dict of actions by worker, such as {'0': {'action', 'control_type'}}"


def _wanted(request: Request, wire: Wire) -> Wanted:
    return Wanted(wire, terminal=flag(request, "terminal"))


def _worker_ids(body: object) -> list[str] | None:
    """None: the body does not say."""
    if body is None:
        return None
    if not isinstance(body, dict):
        raise BadBody(f"the body must be a dict with worker_ids, not {type(body).__name__}")
    value = body.get("worker_ids")
    return None if value is None else check_worker_ids(value)


def _actions(body: object) -> Mapping[str, object]:
    if not isinstance(body, dict) or not body:
        raise BadBody(f"the body must be {_BY_WORKER}")
    if "control_type" in body and not isinstance(body["control_type"], dict):
        raise BadBody(f"that is an action without a worker; the body must be {_BY_WORKER}")
    check_worker_ids(list(body))
    return body


def _chunk(body: object) -> list[Mapping[str, object]]:
    if not isinstance(body, list | tuple) or not 0 < len(body) <= MAX_CHUNK:
        raise BadBody(f"the body must be a list of 1 to {MAX_CHUNK} dicts of actions by worker")
    return [_actions(entry) for entry in body]
