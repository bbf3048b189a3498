"""The chat request as the simulated provider reads it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.core.errors import ConfigError, RequestError
from gateway.core.types import Json
from gateway.simulator.parse import read_changes

_CHARS_PER_PROMPT_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Tool:
    """The tool the model must call."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chat:
    """What the answer depends on. `forced`: the request leaves no choice but the tool. `changes`: its own script."""

    model: str
    stream: bool
    include_usage: bool
    prompt_tokens: int
    max_tokens: int | None
    tool: Tool | None
    forced: bool
    changes: Mapping[str, Any]


def read_json(payload: bytes) -> Json:
    """The body as a JSON object; RequestError otherwise."""
    try:
        body = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"The body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise RequestError(400, "The body is not a JSON object", code="invalid_json")
    return body


def read_chat(body: Json) -> Chat:
    """Raises RequestError for what OpenAI would refuse, and for mistakes in `sim`."""
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(model, str) or not model:
        raise RequestError(400, "You must provide a model parameter", param="model")
    if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
        raise RequestError(400, "messages must be a list of messages with at least one", param="messages")
    options = body.get("stream_options")
    return Chat(
        model=model,
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        prompt_tokens=max(1, -(-sum(map(len, _texts(messages))) // _CHARS_PER_PROMPT_TOKEN)),
        max_tokens=_max_tokens(body),
        tool=_tool(body),
        forced=body.get("tool_choice") == "required" or isinstance(body.get("tool_choice"), dict),
        changes=_changes(body),
    )


def _texts(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (
                part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
            )


def _max_tokens(body: Json) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        limit = body.get(name)
        if limit is None:
            continue
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise RequestError(400, f"{name} must be a whole number of at least 1", param=name)
        return limit
    return None


def _tool(body: Json) -> Tool | None:
    tools = body.get("tools")
    functions = [tool.get("function") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    named = [found for found in functions if isinstance(found, dict) and isinstance(found.get("name"), str)]
    choice = body.get("tool_choice")
    wanted = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(wanted, dict):
        named = [found for found in named if found["name"] == wanted.get("name")]
        if not named:
            raise RequestError(400, "tool_choice names a tool that is not in tools", param="tool_choice")
    if not named:
        return None
    parameters = named[0].get("parameters")
    return Tool(named[0]["name"], parameters if isinstance(parameters, dict) else {})


def _changes(body: Json) -> Mapping[str, Any]:
    if "sim" not in body:
        return {}
    try:
        return read_changes(body["sim"])
    except ConfigError as error:
        raise RequestError(400, "; ".join(error.problems), code="invalid_sim", param="sim") from None
