"""From a request to plain values, and back to a response."""

import asyncio

from fastapi import Request, Response

from urlab.evaluation.http.bodies import read_body, write_body
from urlab.evaluation.http.wire import Wire, wire_of
from urlab.evaluation.problems import BadBody

_LARGE_BODY_BYTES = 64 << 10
_TRUE_WORDS = ("1", "true", "yes")


async def read_request(request: Request, default: Wire) -> tuple[object, Wire]:
    """The body's value (None if it is empty) and its language; large bodies are read off the event loop."""
    wire = wire_of(request.headers.get("content-type"), default)
    body = await request.body()
    if len(body) > _LARGE_BODY_BYTES:
        return await asyncio.to_thread(read_body, body, wire), wire
    return read_body(body, wire), wire


async def read_data(request: Request) -> tuple[dict[str, object], Wire]:
    """The object under ``data``, as the control endpoints have it."""
    body, wire = await read_request(request, Wire.JSON)
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict):
        raise BadBody('the body must be an object {"data": {...}}')
    return data, wire


def reply(value: object, wire: Wire) -> Response:
    """A response in the language of its request."""
    return Response(write_body(value, wire), media_type=wire.value)


def flag(request: Request, name: str) -> bool:
    """Whether a query parameter says yes."""
    return request.query_params.get(name, "").lower() in _TRUE_WORDS
