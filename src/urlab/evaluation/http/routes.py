"""The endpoints. What is the client's mistake becomes a `RefusedRequest`, and so a 4xx with a ``detail``."""

import asyncio
import contextlib
import html
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from urlab.evaluation.encoding import BodyFormat, write_body
from urlab.evaluation.errors import BadBody
from urlab.evaluation.http.bodies import LongWork, format_of, read_body
from urlab.evaluation.http.generations import Caller
from urlab.evaluation.http.service import EvaluationService
from urlab.evaluation.settings import OWN_CLIENT_HEADER, RUN_ID_HEADER
from urlab.evaluation.simulation.actions import describe
from urlab.evaluation.workers.pool import ReplyFormat

MAX_CHUNK = 10_000
_LARGE_BODY_BYTES = 16 << 10
_VALUES_AT_ONCE = 10_000
"""Reading so many bytes and values takes some 10 ms at most; a small pickle can stand for far more, by references."""
_LONGEST_WORKER_ID = 64
_BROWSER = "Mozilla"
_TRUE_WORDS = ("1", "true", "yes")

# The JSON bodies of the endpoints, as the OpenAPI document describes them.
_Schema = dict[str, Any]

_WORKER_ID: _Schema = {"type": "string", "minLength": 1, "maxLength": _LONGEST_WORKER_ID}
_WORKER_IDS: _Schema = {"type": "array", "items": _WORKER_ID, "maxItems": 16, "example": ["0"]}
_ACTION: _Schema = {
    "type": "object",
    "required": ["action", "control_type"],
    "properties": {
        "action": {"type": "array", "items": {}},
        "control_type": {"enum": ["joint_position", "ee_pose"]},
        "is_rel": {"type": "boolean"},
        "base_motion": {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3},
    },
}

_WORKERS: _Schema = {"type": "object", "properties": {"worker_ids": _WORKER_IDS}}
_FAILED: _Schema = {
    "type": "object",
    "properties": {"worker_ids": _WORKER_IDS, "reason": {"type": "string"}},
    "required": ["worker_ids", "reason"],
}
_ACTIONS: _Schema = {"type": "object", "minProperties": 1, "additionalProperties": _ACTION}
_CHUNK: _Schema = {"type": "array", "minItems": 1, "items": _ACTIONS}


def _under_data(properties: _Schema, required: list[str]) -> _Schema:
    data = {"type": "object", "properties": properties, "required": required}
    return {"type": "object", "properties": {"data": data}, "required": ["data"]}


_WORKER_DATA = _under_data({"worker_ids": _WORKER_IDS}, ["worker_ids"])
_LOAD = _under_data({"config_path": {"type": "string"}}, ["config_path"])
_JOB = _under_data(
    {
        "config_path": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "run_id": {"type": ["string", "null"]},
        "episodes": {"type": "integer", "minimum": 1},
        "seed": {"type": "integer", "minimum": 0},
    },
    ["config_path"],
)


def _describes(schema: _Schema) -> dict[str, Any]:
    """The part of an endpoint's description that its own signature cannot give."""
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"400": {"description": "the body is not what was expected; `detail` says what and why"}},
    }


def add_routes(app: FastAPI, service: EvaluationService) -> None:
    """All endpoints over one service."""
    _add_docs(app, service)
    _add_worker_routes(app, service)
    _add_step_routes(app, service)
    _add_job_routes(app, service)


def _add_docs(app: FastAPI, service: EvaluationService) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        """Programs that look here are later clients; a person with a browser is none."""
        if _BROWSER not in request.headers.get("user-agent", ""):
            service.visit(caller_of(request))
        return HTMLResponse(_docs_page(app), headers={"content-security-policy": "default-src 'none'"})


def _docs_page(app: FastAPI) -> str:
    """The endpoints in a list, as a page that loads nothing from anywhere."""
    rows = [
        f"<dt><code>{method.upper()} {html.escape(path)}</code></dt><dd>{html.escape(operation['description'])}</dd>"
        for path, operations in app.openapi()["paths"].items()
        for method, operation in operations.items()
    ]
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(app.title)}</title>"
        f"<h1>{html.escape(app.title)}</h1><dl>{''.join(rows)}</dl>"
        "<p>The bodies of requests: <a href='openapi.json'>openapi.json</a></p></html>"
    )


def _add_worker_routes(app: FastAPI, service: EvaluationService) -> None:
    @app.post("/create_workers", openapi_extra=_describes(_WORKER_DATA))
    async def create_workers(request: Request) -> Response:
        """Announce workers; they start when they are reset."""
        data, body_format = await _read_data(request)
        service.create(_check_worker_ids(data.get("worker_ids")))
        return _reply(_SUCCESS, body_format)

    @app.post("/reset", openapi_extra=_describes(_WORKERS))
    async def reset(request: Request) -> Response:
        """Begin an episode with each worker and answer with the first observations."""
        body, body_format = await _read_request(request)
        return _reply(await service.reset(_worker_ids(body), *_how(request, body_format)), body_format)

    @app.post("/reset_result", openapi_extra=_describes(_WORKERS))
    async def reset_result(request: Request) -> Response:
        """The current observations: resets are finished when they are answered."""
        body, body_format = await _read_request(request)
        return _reply(await service.look(_worker_ids(body), *_how(request, body_format)), body_format)

    @app.post("/kill", openapi_extra=_describes(_WORKER_DATA))
    async def kill(request: Request) -> Response:
        """End workers; their unfinished episodes are free for others."""
        data, body_format = await _read_data(request)
        await service.kill(_check_worker_ids(data.get("worker_ids")))
        return _reply(_SUCCESS, body_format)


def _add_step_routes(app: FastAPI, service: EvaluationService) -> None:
    @app.post("/step", openapi_extra=_describes(_ACTIONS))
    async def step(request: Request) -> Response:
        """One action for each worker named; ``?terminal=1`` adds the last observation to an episode's result."""
        body, body_format = await _read_request(request)
        return _reply(await service.step(_actions(body), *_how(request, body_format)), body_format)

    @app.post("/step_chunk", openapi_extra=_describes(_CHUNK))
    async def step_chunk(request: Request) -> Response:
        """Actions one after the other until they or an episode end; only the last state is observed."""
        body, body_format = await _read_request(request)
        return _reply(await service.step_chunk(_chunk(body), *_how(request, body_format)), body_format)

    @app.post("/give_up", openapi_extra=_describes(_FAILED))
    async def give_up(request: Request) -> Response:
        """End the episodes of workers whose policy has failed: they count as failed, and the next ones begin."""
        body, body_format = await _read_request(request)
        ids, reason = _worker_ids(body), body.get("reason") if isinstance(body, dict) else None
        if ids is None or not isinstance(reason, str):
            raise BadBody("the body must be {'worker_ids': [...], 'reason': 'what went wrong'}")
        wanted, _ = _how(request, body_format)
        return _reply(await service.give_up(ids, reason, wanted), body_format)


def _add_job_routes(app: FastAPI, service: EvaluationService) -> None:
    @app.post("/start_new_job", openapi_extra=_describes(_JOB))
    async def start_new_job(request: Request) -> Response:
        """End all workers and start another job; a run_id with results goes on where it stopped."""
        data, body_format = await _read_data(request)
        await service.start_job(data)
        return _reply(_SUCCESS, body_format)

    @app.post("/load_config", openapi_extra=_describes(_LOAD))
    async def load_config(request: Request) -> Response:
        """As /start_new_job, for one task."""
        data, body_format = await _read_data(request)
        await service.load_config(data.get("config_path"))
        return _reply(_SUCCESS, body_format)

    @app.get("/status")
    async def status(request: Request) -> dict[str, Any]:
        """How far the job is; ``?refresh=1`` looks for results on disk first."""
        return {"data": await service.status(refresh=_flag(request, "refresh"))}


_SUCCESS = {"data": {"success": True}}
_BY_WORKER = "a dict of actions by worker, such as {'0': {'action', 'control_type'}}"


def _how(request: Request, body_format: BodyFormat) -> tuple[ReplyFormat, Caller]:
    """How the reply is wanted, and by whom."""
    return ReplyFormat(body_format, terminal=_flag(request, "terminal")), caller_of(request)


def caller_of(request: Request) -> Caller:
    """From the connection, the headers and the query."""
    headers = request.headers
    run_id = headers.get(RUN_ID_HEADER) or request.query_params.get(RUN_ID_HEADER)
    is_own = OWN_CLIENT_HEADER in headers
    return Caller(
        request.client.host if request.client else "", is_own, unquote(run_id) if run_id and is_own else run_id
    )


def _worker_ids(body: object) -> list[str] | None:
    """None: the body does not say."""
    if body is None:
        return None
    if not isinstance(body, dict):
        raise BadBody(f"the body must be a dict with worker_ids, not {type(body).__name__}")
    value = body.get("worker_ids")
    return None if value is None else _check_worker_ids(value)


def _actions(body: object) -> Mapping[str, object]:
    if not isinstance(body, dict) or not body:
        raise BadBody(f"the body must be {_BY_WORKER}")
    if "control_type" in body and not isinstance(body["control_type"], dict):
        raise BadBody(f"that is an action without a worker; the body must be {_BY_WORKER}")
    _check_worker_ids(list(body))
    return body


def _chunk(body: object) -> list[Mapping[str, object]]:
    if not isinstance(body, list | tuple) or not 0 < len(body) <= MAX_CHUNK:
        raise BadBody(f"the body must be a list of 1 to {MAX_CHUNK} dicts of actions by worker")
    return [_actions(entry) for entry in body]


def _check_worker_ids(value: object) -> list[str]:
    """A list of worker ids from a body; BadBody says what is wrong with it."""
    if not isinstance(value, list | tuple) or not all(
        isinstance(one, str) and 0 < len(one) <= _LONGEST_WORKER_ID for one in value
    ):
        raise BadBody(f"worker_ids must be a list of short text, such as ['0', '1'], but {_sent(value)} was sent")
    return list(value)


def _sent(value: object) -> str:
    strange = [one for one in value if not isinstance(one, str)] if isinstance(value, list | tuple) else []
    return f"a list with {describe(strange[0])} in it" if strange else describe(value)


async def _read_request(request: Request) -> tuple[object, BodyFormat]:
    """The body's value (None if it is empty) and its format; large bodies are read off the event loop."""
    body_format = format_of(request.headers.get("content-type"))
    body = await request.body()
    if len(body) <= _LARGE_BODY_BYTES:
        with contextlib.suppress(LongWork):
            return read_body(body, body_format, at_once=_VALUES_AT_ONCE), body_format
    return await asyncio.to_thread(read_body, body, body_format), body_format


async def _read_data(request: Request) -> tuple[dict[str, object], BodyFormat]:
    """The object under ``data``, as the control endpoints have it."""
    body, body_format = await _read_request(request)
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict):
        raise BadBody('the body must be an object {"data": {...}}')
    return data, body_format


def _reply(value: object, body_format: BodyFormat) -> Response:
    """A response in the format of its request."""
    return Response(write_body(value, body_format), media_type=body_format.value)


def _flag(request: Request, name: str) -> bool:
    """Whether a query parameter says yes."""
    return request.query_params.get(name, "").lower() in _TRUE_WORDS
