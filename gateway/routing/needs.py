"""What a chat request needs of a deployment, read from its body once. Tolerates any JSON and never raises."""

from typing import Any

import orjson

from gateway.core.types import Json, Needs

CHARS_PER_TOKEN = 4

_IMAGE_PARTS = frozenset({"image_url", "input_image", "image"})
_OFF = frozenset({"", "none", "disabled", "off"})


def needs(body: Json) -> Needs:
    """Reads an OpenAI chat body. Tokens are characters / 4 over the messages' text and the tools."""
    characters, vision = _messages(body.get("messages"))
    tools = body.get("tools") or body.get("functions")
    has_tools = isinstance(tools, list)
    shape = body.get("response_format")
    return Needs(
        prompt_tokens=(characters + (_json_size(tools) if has_tools else 0)) // CHARS_PER_TOKEN,
        max_tokens=_count(body.get("max_completion_tokens")) or _count(body.get("max_tokens")),
        tools=has_tools,
        vision=vision,
        json_schema=isinstance(shape, dict) and shape.get("type") == "json_schema",
        reasoning=_reasoning(body),
    )


def _messages(messages: Any) -> tuple[int, bool]:
    """Characters of text, and whether there is an image."""
    characters, vision = 0, False
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        if isinstance(content, str):
            characters += len(content)
        elif isinstance(content, list):
            more, image = _parts(content)
            characters, vision = characters + more, vision or image
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            characters += _json_size(calls)
    return characters, vision


def _parts(parts: list[Any]) -> tuple[int, bool]:
    characters, vision = 0, False
    for part in parts:
        if isinstance(part, str):
            characters += len(part)
        elif isinstance(part, dict):
            text, kind = part.get("text"), part.get("type")
            characters += len(text) if isinstance(text, str) else 0
            vision = vision or (isinstance(kind, str) and kind in _IMAGE_PARTS)
    return characters, vision


def _reasoning(body: Json) -> bool:
    return _asks(body.get("reasoning_effort")) or _asks(body.get("reasoning")) or _asks(body.get("thinking"))


def _asks(value: Any) -> bool:
    """Whether a reasoning setting, in any vendor's shape, asks for reasoning."""
    if isinstance(value, str):
        return value.lower() not in _OFF
    if not isinstance(value, dict):
        return value is True
    words = [value.get("effort"), value.get("type")]
    if value.get("enabled") is False or any(isinstance(word, str) and word.lower() in _OFF for word in words):
        return False
    return bool(value)


def _count(value: Any) -> int | None:
    """A positive whole number of tokens; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _json_size(value: Any) -> int:
    try:
        return len(orjson.dumps(value))
    except TypeError:  # nested deeper than the encoder goes
        return 0
