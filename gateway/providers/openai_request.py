"""The request as one deployment of the OpenAI dialect wants it: a copy of the caller's body, adapted."""

from collections.abc import Mapping
from typing import Any

from gateway.core.types import Call, Deployment, Json, Quirks

_PATHS = {
    "chat.completions": "/chat/completions",
    "completions": "/completions",
    "fim.completions": "/fim/completions",
}
# Said to the gateway, not to the upstream.
_ROUTING_FIELDS = ("provider", "models")


def build_request(call: Call, deployment: Deployment) -> tuple[str, Json, tuple[str, ...]]:
    """Path, body and the names of dropped parameters. The caller's body and everything in it stay as they are.

    The deployment's `body` wins over the caller's fields and over the vendor's refusals: the operator said so.
    Objects in it are merged key by key, anything else is replaced.
    """
    quirks = deployment.provider.quirks
    body = dict(call.body)
    for name in _ROUTING_FIELDS:
        body.pop(name, None)
    dropped = _adapt(body, quirks)
    if not quirks.developer_role:
        _speak_as_system(body)
    for name, value in deployment.body.items():
        body[name] = _merged(body.get(name), value)
    body["model"] = deployment.upstream_model
    if call.stream:
        _ask_for_usage(body, quirks, dropped)
    return _PATHS.get(call.surface, "/chat/completions"), body, tuple(dropped)


def _adapt(body: Json, quirks: Quirks) -> list[str]:
    """Renames before it refuses. A name is reported only where its value does not reach the upstream at all."""
    dropped: list[str] = []
    for name, other in quirks.renames.items():
        if name not in body:
            continue
        value = body.pop(name)
        if body.get(other) is None:
            body[other] = value
        elif body[other] != value:
            dropped.append(name)
    for name in sorted(quirks.refuses.intersection(body)):
        del body[name]
        dropped.append(name)
    return dropped


def _speak_as_system(body: Json) -> None:
    messages = body.get("messages")
    if isinstance(messages, list) and any(_is_developer(message) for message in messages):
        body["messages"] = [
            {**message, "role": "system"} if _is_developer(message) else message for message in messages
        ]


def _is_developer(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "developer"


def _ask_for_usage(body: Json, quirks: Quirks, dropped: list[str]) -> None:
    options = body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        return
    if quirks.include_usage:
        # A vendor that refuses the whole object has it in `refuses`; asking again would undo that.
        if "stream_options" not in quirks.refuses:
            body["stream_options"] = {**(options or {}), "include_usage": True}
        return
    if options and "include_usage" in options:
        kept = {name: value for name, value in options.items() if name != "include_usage"}
        body["stream_options"] = kept
        if not kept:
            del body["stream_options"]
        dropped.append("stream_options.include_usage")


def _merged(mine: Any, theirs: Any) -> Any:
    """A new value; read-only mappings of the configuration become plain dicts that can be serialised."""
    if isinstance(theirs, Mapping):
        base = dict(mine) if isinstance(mine, dict) else {}
        for name, value in theirs.items():
            base[name] = _merged(base.get(name), value)
        return base
    if isinstance(theirs, tuple | list):
        return [_merged(None, item) for item in theirs]
    return theirs
