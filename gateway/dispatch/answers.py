"""What the client is told: OpenAI error bodies, in-band error events, routing headers."""

from collections.abc import Sequence
from typing import Any

import orjson

from gateway.core.errors import AttemptError
from gateway.core.record import AttemptRecord, GenerationRecord, as_json
from gateway.core.types import Candidate

Headers = list[tuple[bytes, bytes]]

# Upstream headers the client may see: when to come back, and how much of its rate is left. Nothing of the account.
_PASSED_ON = (b"retry-after", b"x-ratelimit-", b"anthropic-ratelimit-")

STREAM_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)

# The worse the rank, the less it helps the client to act: its own mistake first, then when to come back.
_USEFULNESS = (400, 429, 503, 504, 502, 500)


def error_type(status: int) -> str:
    """OpenAI's word for a kind of error."""
    if status == 401:
        return "authentication_error"
    if status == 403:
        return "permission_error"
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"


def error_body(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    attempts: Sequence[AttemptRecord] = (),
) -> bytes:
    """`{"error": {"message", "type", "param", "code"}}`, with the attempts where any were made."""
    error: dict[str, Any] = {"message": message, "type": error_type(status), "param": param, "code": code}
    if attempts:
        error["attempts"] = [_attempt(entry) for entry in attempts]
    return orjson.dumps({"error": error})


def error_event(body: bytes) -> bytes:
    """An error inside a stream. No `[DONE]` follows: the answer did not end well."""
    return b"data: " + body + b"\n\n"


def meter_comment(record: GenerationRecord) -> bytes:
    """The record as one comment line of a stream: no client takes it for an event."""
    return b": gateway " + orjson.dumps(as_json(record)) + b"\n\n"


def _attempt(entry: AttemptRecord) -> dict[str, Any]:
    return {
        "provider": entry.provider,
        "model": entry.model,
        "status": entry.status,
        "error": entry.error,
        "ms": None if entry.duration_ms is None else round(entry.duration_ms, 1),
    }


def most_useful(errors: Sequence[AttemptError]) -> AttemptError:
    """The failure to tell the client when every attempt failed; the latest of equals."""
    return min(reversed(errors), key=lambda error: _USEFULNESS.index(error.kind.status))


def describe(error: AttemptError, deployment_id: str, tried: int) -> str:
    """One sentence for the client. An upstream's own words only where the caller has to correct the request."""
    if error.wire is not None and error.wire.message and error.kind.status == 400:
        return error.wire.message
    what = f"{deployment_id} {error.detail or error.kind.says}"
    if error.status is not None and error.status >= 400:
        what += f" (HTTP {error.status})"
    return what if tried == 1 else f"All {tried} attempts failed. The most telling one: {what}"


def least_retry_after(errors: Sequence[AttemptError]) -> Headers:
    """`Retry-After`, the least of the attempts', in whole seconds rounded up."""
    known = [error.retry_after_s for error in errors if error.retry_after_s is not None]
    return [(b"retry-after", str(-int(-min(known) // 1)).encode())] if known else []


def passed_on(headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    """The upstream headers that the client may see."""
    return [(name, value) for name, value in headers if name.startswith(_PASSED_ON)]


def routing_headers(request_id: str, candidate: Candidate | None, attempts: int) -> Headers:
    """`x-request-id` and the `x-gateway-…` headers of a routed answer."""
    headers: Headers = [(b"x-request-id", request_id.encode()), (b"x-gateway-attempts", str(attempts).encode())]
    if candidate is not None:
        deployment = candidate.deployment
        headers += [
            (b"x-gateway-provider", _value(deployment.provider.name)),
            (b"x-gateway-model", _value(deployment.model)),
            (b"x-gateway-deployment", _value(deployment.id)),
            (b"x-gateway-reason", _value(candidate.reason)),
        ]
    return headers


def overhead_header(seconds: float) -> tuple[bytes, bytes]:
    """Our own time, on every routed answer that is not a stream."""
    return b"x-gateway-overhead-ms", f"{seconds * 1000:.1f}".encode()


def _value(text: str) -> bytes:
    """Configured names as a header value: printable Latin-1, nothing else."""
    return "".join(char if char.isprintable() else "?" for char in text).encode("latin-1", "replace")
