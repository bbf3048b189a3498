"""The ASGI application: ROUTES, and around every route the same doors, errors and request id."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.api.asgi import App, Receive, Request, Scope, Send, new_id, respond, respond_error
from gateway.api.chat import chat_completions
from gateway.api.doors import check_json
from gateway.api.endpoints import endpoints
from gateway.api.generation import generation
from gateway.api.health import healthz, metrics, readyz
from gateway.api.models import list_models, one_model
from gateway.api.services import Services
from gateway.api.speed import speed
from gateway.core.errors import RequestError
from gateway.core.types import Caller
from gateway.dispatch.answers import Headers

# Who may: anyone, or any key.
Open = Callable[[Services, Request], Awaitable[None]]
Keyed = Callable[[Services, Request, Caller], Awaitable[None]]
# The same, of what the path names.
Named = Callable[[Services, Request, Caller, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Route:
    """One path. One of the handlers is set."""

    method: str
    open: Open | None = None
    keyed: Keyed | None = None
    named: Named | None = None


ROUTES: Mapping[str, Route] = {
    "/healthz": Route("GET", open=healthz),
    "/health": Route("GET", open=healthz),
    "/readyz": Route("GET", open=readyz),
    "/v1/chat/completions": Route("POST", keyed=chat_completions),
    "/v1/models": Route("GET", keyed=list_models),
    "/v1/generation": Route("GET", keyed=generation),
    "/v1/speed": Route("GET", keyed=speed),
}
MODEL_PREFIX = "/v1/models/"
ENDPOINTS_SUFFIX = "/endpoints"
# What follows the prefix is a name, slashes and all.
MODEL_ROUTES: Mapping[str, Route] = {
    MODEL_PREFIX + "{id}": Route("GET", named=one_model),
    MODEL_PREFIX + "{id}" + ENDPOINTS_SUFFIX: Route("GET", named=endpoints),
}
METRICS_PATH = "/metrics"

_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, POST"),
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
            route, rest = _find(request, metrics_here=not self._services.metrics_apart)
            if route.open is not None:
                _check_method(request, route)
                await route.open(self._services, request)
                return
            self._services.doors.check_host(request)
            origin = self._services.doors.check_origin(request)
        except RequestError as error:
            await respond_error(request, error)
            return
        if origin is not None:
            request = Request(scope, receive, _with_headers(send, _cors_headers(origin)), request.id)
        try:
            await self._enter(request, route, rest, preflight=origin is not None and request.method == "OPTIONS")
        except RequestError as error:
            await respond_error(request, error)

    async def _enter(self, request: Request, route: Route, rest: str, *, preflight: bool) -> None:
        if preflight:
            await respond(request, 204, b"", [*_PREFLIGHT, _allowed_headers(request)])
            return
        _check_method(request, route)
        caller = self._services.doors.caller(request)
        if route.method == "POST":
            check_json(request)
        if route.keyed is not None:
            await route.keyed(self._services, request, caller)
        elif route.named is not None:
            await route.named(self._services, request, caller, rest)


async def _metrics(services: Services, request: Request, caller: Caller) -> None:
    await metrics(services, request)


_METRICS = Route("GET", keyed=_metrics)


def _find(request: Request, *, metrics_here: bool) -> tuple[Route, str]:
    """The route, and the name in the path. Raises RequestError 404."""
    path = request.path
    route = ROUTES.get(path)
    if route is not None:
        return route, ""
    if path == METRICS_PATH and metrics_here:
        return _METRICS, ""
    if path.startswith(MODEL_PREFIX) and len(path) > len(MODEL_PREFIX):
        return _find_model(request, path[len(MODEL_PREFIX) :])
    known = ", ".join(sorted([*ROUTES, METRICS_PATH, *MODEL_ROUTES]))
    raise RequestError(404, f"there is no {path[:200]!r} here; known paths: {known}", code="not_found")


def _find_model(request: Request, name: str) -> tuple[Route, str]:
    """A name may hold slashes, also one before a last part `endpoints`; that one has to be sent as `%2F`."""
    one, listed = MODEL_ROUTES.values()
    model = name.removesuffix(ENDPOINTS_SUFFIX)
    if model and model != name and request.raw_path.endswith(ENDPOINTS_SUFFIX.encode()):
        return listed, model
    return one, name


def _check_method(request: Request, route: Route) -> None:
    if request.method != route.method and not (request.method == "HEAD" and route.method == "GET"):
        raise RequestError(405, f"{request.path} takes {route.method}", code="method_not_allowed")


def _cors_headers(origin: str) -> Headers:
    return [
        (b"access-control-allow-origin", origin.encode("latin-1", "replace")),
        (b"access-control-expose-headers", b"*"),
        (b"vary", b"Origin"),
    ]


def _allowed_headers(request: Request) -> tuple[bytes, bytes]:
    """Whatever a listed page asks for: SDKs send a dozen headers of their own."""
    asked = request.header(b"access-control-request-headers") or "authorization, content-type"
    return b"access-control-allow-headers", asked.encode("latin-1")


def _with_headers(send: Send, extra: Headers) -> Send:
    async def send_more(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    return send_more


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
