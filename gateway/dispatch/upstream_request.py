"""The request that goes to a provider: body, headers, and nothing of the caller's that is not on a list."""

import json
from dataclasses import dataclass

import orjson

from gateway import __version__
from gateway.core.errors import AttemptError
from gateway.core.ports import Dialect, Outbound
from gateway.core.reading import WireError
from gateway.core.types import Call, Deployment, Json, asked_tier

# Beta and version flags, and what OpenRouter shows as the calling app. Never a credential, cookie or forwarding header.
_ALLOWED = frozenset({"openai-beta", "anthropic-beta", "anthropic-version", "http-referer", "x-title"})
_TRACE = frozenset({"traceparent", "tracestate"})


@dataclass(frozen=True, slots=True)
class Sending:
    """A request for one deployment, the parameters that were dropped for it, and the speed tier it asks for."""

    request: Outbound
    dropped: tuple[str, ...]
    tier: str | None


def outbound(call: Call, deployment: Deployment, dialect: Dialect) -> Sending:
    """What is sent to this deployment."""
    path, body, dropped = dialect.request(call, deployment)
    request = Outbound(path, dumps(body), tuple(_headers(call, deployment).items()))
    return Sending(request, dropped, asked_tier(body))


def _headers(call: Call, deployment: Deployment) -> dict[str, str]:
    provider = deployment.provider
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if call.stream else "application/json",
        # A compressed stream arrives in blocks, and its bytes could not be relayed as they came.
        "accept-encoding": "identity",
        "user-agent": f"speed-gateway/{__version__}",
    }
    allowed = _ALLOWED | _TRACE if provider.trusted else _ALLOWED
    headers.update((name, value) for name, value in call.headers if name in allowed)
    headers.update((name.lower(), value) for name, value in provider.headers)
    credential = provider.credential
    if credential.kind == "fixed":
        headers[credential.header] = credential.value
    elif credential.kind == "caller" and call.caller_key is not None:
        headers["authorization"] = f"Bearer {call.caller_key}"
    return headers


def dumps(body: Json) -> bytes:
    """JSON bytes. The slow way is for what clients send and the fast one refuses: half of an emoji, deep nesting.

    Raises AttemptError `bad_request` where the nesting is too deep for both.
    """
    try:
        return orjson.dumps(body)
    except (TypeError, UnicodeEncodeError):
        pass
    try:
        return json.dumps(body, separators=(",", ":")).encode("ascii")
    except RecursionError:
        says = WireError("bad_request", "the request body is nested too deeply")
        raise AttemptError(says.code, wire=says) from None
