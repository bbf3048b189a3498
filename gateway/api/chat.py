"""POST /v1/chat/completions: checked, made a Call, dispatched; whatever happens its limits are given back."""

import asyncio
from typing import Any

from gateway.api.asgi import Request, respond_error
from gateway.api.body import ClientLeft, HeldBody, parse_object, read_body
from gateway.api.doors import presented_key
from gateway.api.names import MAX_NAME
from gateway.api.peer import Departure
from gateway.api.services import Services
from gateway.api.sink import AsgiSink
from gateway.core.clock import iso_utc, monotonic, utc_now
from gateway.core.errors import RequestError
from gateway.core.record import ClientView, GenerationRecord
from gateway.core.types import Call, Caller, Json
from gateway.dispatch.answers import error_body, error_event, meter_comment

# Routing wishes that this version does not act on. An ignored wish would be worse than a refused one.
_UNSUPPORTED_FIELDS = ("provider", "models")
_UNSUPPORTED_HEADERS = (b"x-gateway-tier", b"x-gateway-strategy", b"x-gateway-timeout-ttft")

SURFACE = "chat.completions"
# The record's word for a refusal; everything else is a bad request.
_REFUSALS = {403: "auth", 404: "not_found", 503: "overloaded"}

_MAX_LABEL = 128


async def chat_completions(services: Services, request: Request, caller: Caller) -> None:
    """OpenAI's chat completions, streaming and not."""
    started = monotonic()
    body: Json = {}
    try:
        _enter(services)
        held = HeldBody(services.bodies)
        try:
            await read_body(request, held, services.max_body)
            body = parse_object(held.data)
            size = len(held.data)
            held.data = bytearray()
            call = _call(services, request, caller, body, (started, size))
            await _dispatch(services, request, call)
        except ClientLeft:
            pass
        finally:
            held.release()
            services.streams.release()
    except RequestError as error:
        services.dispatcher.refused(_refusal(request, caller, body, error, monotonic() - started))
        raise


def _enter(services: Services) -> None:
    """Takes a place among the requests in flight. Raises RequestError 503."""
    if not services.readiness.ready:
        raise RequestError(503, "the gateway is shutting down", code="overloaded", retry_after_s=1.0)
    services.streams.acquire()


def _refusal(request: Request, caller: Caller, body: Json, error: RequestError, duration_s: float) -> GenerationRecord:
    """The record of a request that never came to an attempt."""
    return GenerationRecord(
        id=request.id,
        created=iso_utc(utc_now()),
        surface=SURFACE,
        stream=body.get("stream") is True,
        requested_model=str(body.get("model", ""))[:MAX_NAME],
        outcome="error",
        error=_REFUSALS.get(error.status, "bad_request"),
        client_request_id=_label(request, b"x-request-id"),
        key=caller.name,
        client=ClientView(duration_ms=duration_s * 1000),
    )


async def _dispatch(services: Services, request: Request, call: Call) -> None:
    with Departure(request.scope, request.receive) as departure:
        sink = AsgiSink(request.scope, request.send, departure)
        try:
            await services.dispatcher.run(call, sink)
        except asyncio.CancelledError:
            # The client left, or the gateway stops: that is an outcome, and it is in the record. The server need not
            # hear of it.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            if not departure.came:
                await _tell_stop(services, request, call, sink)


async def _tell_stop(services: Services, request: Request, call: Call, sink: AsgiSink) -> None:
    """The gateway stops before this request was done: an error, also inside a stream that has begun; no false end."""
    stop = RequestError(503, "the gateway is shutting down", code="overloaded", retry_after_s=1.0)
    if not sink.started:
        await respond_error(request, stop)
    elif call.stream:
        record = services.records.get(call.id) if call.meter else None
        told = meter_comment(record) if record is not None else b""
        await sink.write(told + error_event(error_body(stop.status, stop.message, code=stop.code)))
        await sink.end()


def _call(services: Services, request: Request, caller: Caller, body: Json, arrival: tuple[float, int]) -> Call:
    started, size = arrival
    target = services.names.target(_model(body), caller)
    _check(request, body)
    return Call(
        id=request.id,
        surface=SURFACE,
        path=request.path,
        body=body,
        stream=body.get("stream") is True,
        target=target,
        caller=caller,
        needs=services.needs(body),
        started=started,
        received=monotonic(),
        size=size,
        headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers),
        caller_key=presented_key(request),
        meter=_wants_meter(request),
        client_request_id=_label(request, b"x-request-id"),
        task=_label(request, b"x-gateway-task"),
        session=_label(request, b"x-gateway-session"),
    )


def _model(body: Json) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise _bad("model", "must be a string naming a model; GET /v1/models lists them")
    return model


def _check(request: Request, body: Json) -> None:
    """What we rely on ourselves; everything else is the provider's to judge."""
    messages: Any = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _bad("messages", "must be a list with at least one message")
    if not all(isinstance(message, dict) for message in messages):
        raise _bad("messages", "must be a list of objects")
    if not isinstance(body.get("stream"), bool | None):
        raise _bad("stream", "must be true or false")
    if not isinstance(body.get("stream_options"), dict | None):
        raise _bad("stream_options", "must be an object")
    for field in _UNSUPPORTED_FIELDS:
        if body.get(field) is not None:
            raise _bad(field, "is a routing wish that this version does not act on; leave it out")
    for header in _UNSUPPORTED_HEADERS:
        if request.header(header) is not None:
            name = header.decode()
            raise _bad(name, "is a routing wish that this version does not act on; leave the header out")


def _wants_meter(request: Request) -> bool:
    """`x-gateway-meter: 1`. Raises RequestError for anything but 1 and 0."""
    value = request.header(b"x-gateway-meter")
    if value not in (None, "0", "1"):
        raise _bad("x-gateway-meter", "must be 1 (the stream ends with the record as a comment) or 0")
    return value == "1"


def _bad(field: str, what: str) -> RequestError:
    return RequestError(400, f"{field} {what}", code="invalid_value", param=field)


def _label(request: Request, header: bytes) -> str | None:
    """A caller's own name for something: up to 128 printable ASCII characters, else nothing."""
    value = request.header(header)
    if value is None or not value or len(value) > _MAX_LABEL or not (value.isascii() and value.isprintable()):
        return None
    return value
