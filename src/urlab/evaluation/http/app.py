"""The evaluation server as an ASGI application, and its life as a process."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from urlab.errors import UrlabError
from urlab.evaluation.http.desk import Desk
from urlab.evaluation.http.gate import Gate
from urlab.evaluation.http.routes import add_routes
from urlab.evaluation.http.server import listening_on, run_server
from urlab.evaluation.problems import Problem
from urlab.evaluation.settings import ServerSettings

__all__ = ["ServerSettings", "create_app", "serve"]

log = logging.getLogger("urlab.evaluation.http")


def create_app(settings: ServerSettings) -> FastAPI:
    """The application; its job begins and its workers end with it. UrlabError if the settings cannot work."""
    desk = Desk(settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await desk.close()

    app = FastAPI(title="URLab policy evaluation", lifespan=lifespan, redirect_slashes=False, redoc_url=None)
    add_routes(app, desk)
    app.add_middleware(Gate, token=settings.token, max_body_bytes=settings.max_body_bytes)
    app.add_exception_handler(UrlabError, _explain)
    app.state.desk = desk
    return app


def serve(settings: ServerSettings, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM. Once requests are answered, the ready file has ``pid`` and ``url``, and
    ``on_ready`` is told the url.
    """
    with listening_on(settings) as listening:
        app = create_app(settings)
        run_server(app, settings, listening, on_ready, app.state.desk.close)


async def _explain(request: Request, problem: Exception) -> JSONResponse:
    status = problem.status if isinstance(problem, Problem) else 400
    message = problem.message if isinstance(problem, UrlabError) else str(problem)
    log.debug("%s refused with %d: %s", request.url.path, status, message)
    return JSONResponse({"detail": message}, status)
