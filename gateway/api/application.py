"""The ASGI application: ROUTES, and around every route the same doors, errors and request id."""

import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.api.asgi import App, Receive, Request, Scope, Send, respond, respond_error
from gateway.api.chat import chat_completions
from gateway.api.doors import check_json
from gateway.api.generation import generation
from gateway.api.health import healthz, metrics, readyz
from gateway.api.models import list_models, one_model
from gateway.api.services import Services
from gateway.core.errors import RequestError
from gateway.core.types import Caller
from gateway.dispatch.answers import Headers

log = logging.getLogger("gateway.api")

# Who may: anyone, any key, or a path that takes its caller and CORS headers on to the dispatcher.
Open = Callable[[Services, Request], Awaitable[None]]
Keyed = Callable[[Services, Request, Caller], Awaitable[None]]
Routed = Callable[[Services, Request, Caller, Headers], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Route:
    """One path. Exactly one of the three handlers is set."""

    method: str
    open: Open | None = None
    keyed: Keyed | None = None
    routed: Routed | None = None


ROUTES: Mapping[str, Route] = {
    "/healthz": Route("GET", open=healthz),
    "/health": Route("GET", open=healthz),
    "/readyz": Route("GET", open=readyz),
    "/v1/chat/completions": Route("POST", routed=chat_completions),
    "/v1/models": Route("GET", keyed=list_models),
    "/v1/generation": Route("GET", keyed=generation),
}
MODEL_PREFIX = "/v1/models/"
METRICS_PATH = "/metrics"

_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type, x-api-key, x-request-id, x-gateway-session"),
    (b"access-control-max-age", b"600"),
]


class Application:
    """Serves the surfaces. Lifespan events are answered by `app`, which owns what starts and stops."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send, new_id())
        try:
            await self._serve(request)
        except RequestError as error:
            await respond_error(request, error)

    async def _serve(self, request: Request) -> None:
        route, rest = _find(request.path, metrics_here=not self._services.metrics_apart)
        if route.open is not None:
            _check_method(request, route)
            await route.open(self._services, request)
            return
        doors = self._services.doors
        doors.check_host(request)
        cors = _cors_headers(doors.check_origin(request))
        if request.method == "OPTIONS" and cors:
            await respond(request, 204, b"", [*cors, *_PREFLIGHT])
            return
        _check_method(request, route)
        send = request.send if not cors or route.routed else _with_headers(request.send, cors)
        request = Request(request.scope, request.receive, send, request.id)
        await self._enter(request, route, rest, cors)

    async def _enter(self, request: Request, route: Route, rest: str, cors: Headers) -> None:
        caller = self._services.doors.caller(request)
        if route.routed is not None:
            check_json(request)
            await route.routed(self._services, request, caller, cors)
        elif rest:
            await one_model(self._services, request, caller, rest)
        elif route.keyed is not None:
            await route.keyed(self._services, request, caller)


async def _metrics(services: Services, request: Request, caller: Caller) -> None:
    await metrics(services, request)


_METRICS = Route("GET", keyed=_metrics)
_ONE_MODEL = Route("GET")


def _find(path: str, *, metrics_here: bool) -> tuple[Route, str]:
    """The route, and what follows its prefix. Raises RequestError 404."""
    route = ROUTES.get(path)
    if route is not None:
        return route, ""
    if path == METRICS_PATH and metrics_here:
        return _METRICS, ""
    if path.startswith(MODEL_PREFIX) and len(path) > len(MODEL_PREFIX):
        return _ONE_MODEL, path[len(MODEL_PREFIX) :]
    known = ", ".join(sorted(ROUTES))
    raise RequestError(404, f"there is no {path[:200]!r} here; known paths: {known}", code="not_found")


def _check_method(request: Request, route: Route) -> None:
    if request.method != route.method and not (request.method == "HEAD" and route.method == "GET"):
        raise RequestError(405, f"{request.path} takes {route.method}", code="method_not_allowed")


def _cors_headers(origin: str | None) -> Headers:
    if origin is None:
        return []
    return [
        (b"access-control-allow-origin", origin.encode("latin-1", "replace")),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"Origin"),
    ]


def _with_headers(send: Send, extra: Headers) -> Send:
    async def send_more(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    return send_more


def new_id() -> str:
    """A generation id: 128 random bits, so that nobody guesses another's."""
    return f"gen-{uuid.uuid4().hex}"


def metrics_only(services: Services) -> App:
    """The application behind `server.metrics_listen`."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send, new_id())
        if scope["path"] != METRICS_PATH:
            await respond_error(request, RequestError(404, "only /metrics is served here", code="not_found"))
            return
        await metrics(services, request)

    return app
