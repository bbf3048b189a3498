"""Events and answers of the OpenAI dialect, read into the neutral `Reading`. Runs once per chunk of every stream."""

import json
from typing import Any

import orjson

from gateway.core.reading import Reading, WireError
from gateway.core.types import Json
from gateway.providers.openai_errors import base_resp_error, error_in_stream, finish_error
from gateway.providers.openai_usage import CLOCK_KEYS, cached_by_server, read_clock, read_usage

# Keys of an ordinary chunk. An event with nothing else in it skips every search for vendors' extras.
_ORDINARY = frozenset(
    {"id", "object", "created", "model", "system_fingerprint", "choices", "service_tier", "obfuscation", "provider"}
    | {"usage", "citations"}
)
_ORDINARY_CHOICE = frozenset({"index", "delta", "finish_reason", "logprobs", "native_finish_reason"})
# The same text under several names: counted once, by the longest.
_REASONING = frozenset({"reasoning_content", "reasoning", "reasoning_text", "thinking"})
# Bear no token, or repeat what another field says.
_SILENT = frozenset(
    {"role", "name", "id", "object", "index", "type", "status", "prefix", "padding", "obfuscation", "token_id"}
    | {"annotations", "citations", "tool_call_id", "extra_content", "provider_specific_fields", "thinking_blocks"}
    | {"signature", "reasoning_signature", "reasoning_opaque", "encrypted_content", "logprobs"}
    | {"content_filter_results", "finish_reason", "stop_reason", "matched_stop"}
)
_WITHHELD = frozenset({"reasoning.summary", "reasoning.encrypted"})


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One event. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    if payload == b"[DONE]":
        return Reading(terminal=True)
    try:
        event = orjson.loads(payload)
    except ValueError:
        return _read_oddity(name, payload)
    reading = Reading()
    content = _plain_content(event)
    if content:
        reading.content = content
        _read_fields(reading, name, event, True)
        return reading
    try:
        _read(reading, name, event)
    except RecursionError:
        return Reading(bad=True)
    return reading


def _plain_content(event: Any) -> int:
    """Characters of the commonest chunk there is, one choice with a piece of text and nothing else; 0 for any other.

    A shorter way to what `_read` finds: it saves a fifth of the time of a chunk.
    """
    try:
        (choice,) = event["choices"]
        delta = choice["delta"]
        if len(delta) == 1 and not choice.get("finish_reason") and not choice.get("index") and len(choice) <= 4:
            content = delta.get("content")
            if type(content) is str and _ORDINARY_CHOICE.issuperset(choice):
                return len(content)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    return 0


def read_body(payload: bytes) -> Reading:
    """A whole answer. Its `message` is what was generated, not a repetition."""
    reading = Reading()
    try:
        _read(reading, None, _loads(payload), whole=True)
    except (ValueError, RecursionError):
        return Reading(bad=True)
    return _clean(reading)


def _loads(payload: bytes) -> Any:
    """As orjson, and also what Python servers write and JSON forbids: NaN, half a surrogate pair."""
    try:
        return orjson.loads(payload)
    except ValueError:
        return json.loads(payload.decode("utf-8"))


def _read_oddity(name: bytes | None, payload: bytes) -> Reading:
    """What orjson refuses: the end marker with blanks around it, a lax server's JSON, an error in plain words."""
    if payload.strip() == b"[DONE]":
        return Reading(terminal=True)
    reading = Reading()
    try:
        _read(reading, name, _loads(payload))
    except (ValueError, RecursionError):
        if name == b"error":
            return Reading(error=error_in_stream(payload[:8000].decode("utf-8", "replace")))
        return Reading(bad=True)
    return _clean(reading)


def _clean(reading: Reading) -> Reading:
    """Half a surrogate pair must not travel on in what is kept: it cannot be encoded again."""
    for name in ("model", "tier", "response_id", "finish"):
        setattr(reading, name, _encodable(getattr(reading, name)))
    error = reading.error
    if error is not None:
        error.message, error.param = _encodable(error.message), _encodable(error.param)
        error.wire_code = _encodable(error.wire_code) if isinstance(error.wire_code, str) else error.wire_code
    return reading


def _encodable(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")


def _read(reading: Reading, name: bytes | None, event: Any, whole: bool = False) -> None:
    if type(event) is not dict:
        _read_no_object(reading, name, event)
        return
    choices = event.get("choices")
    if type(choices) is list:
        for choice in choices:
            if type(choice) is dict:
                _read_choice(reading, choice, whole)
        if len(choices) > reading.choices:
            reading.choices = len(choices)
    _read_fields(reading, name, event, type(choices) is list)


def _read_fields(reading: Reading, name: bytes | None, event: Json, has_choices: bool) -> None:
    value = event.get("model")
    if value and type(value) is str:
        reading.model = value
    value = event.get("id")
    if value and type(value) is str:
        reading.response_id = value
    value = event.get("service_tier")
    if value and type(value) is str:
        reading.tier = value
    usage = event.get("usage")
    if usage is not None or not _ORDINARY.issuperset(event):
        _read_extras(reading, name, event, usage, has_choices)
    elif name == b"error" or (not has_choices and event.get("object") == "error"):
        reading.error = error_in_stream(event)


def _read_no_object(reading: Reading, name: bytes | None, event: Any) -> None:
    """A list with an error in it (Gemini's style), a bare string under `event: error`; anything else is bad."""
    if name == b"error" or (type(event) is list and event and type(event[0]) is dict and event[0].get("error")):
        reading.error = error_in_stream(event)
    else:
        reading.bad = True


def _read_extras(reading: Reading, name: bytes | None, event: Json, usage: Any, has_choices: bool) -> None:
    groq = event.get("x_groq")
    also = groq.get("usage") if type(groq) is dict else None
    found = read_usage(usage) or read_usage(also)
    if found is not None:
        reading.usage = found
        if found.cached is None:
            found.cached = cached_by_server(event)
    if type(usage) is dict:
        if has_choices and not event["choices"] and "prompt_filter_results" not in event:
            reading.usage_only = True
        if reading.tier is None:
            reading.tier = _text_or_none(usage.get("service_tier")) or _text_or_none(usage.get("speed"))
    if usage or also or not CLOCK_KEYS.isdisjoint(event):
        reading.server_clock = read_clock(event, (also, usage))
    error = _error(name, event, groq, has_choices)
    if error is not None:
        reading.error = error
        reading.usage_only = False


def _error(name: bytes | None, event: Json, groq: Any, has_choices: bool) -> WireError | None:
    if event.get("error") or name == b"error":
        return error_in_stream(event)
    base = event.get("base_resp")
    if type(base) is dict and base.get("status_code"):
        return base_resp_error(base)
    if type(groq) is dict and groq.get("error"):
        return error_in_stream(groq)
    status = event.get("status_code")
    if type(status) is int and status >= 400:
        return error_in_stream(event)
    if not has_choices and (
        event.get("object") == "error"
        or event.get("type") == "error"
        or event.get("errors")
        or event.get("detail")
        or (event.get("message") and event.get("code"))
    ):
        return error_in_stream(event)
    return None


def _read_choice(reading: Reading, choice: Json, whole: bool) -> None:
    index = choice.get("index")
    if index and (type(index) is int or type(index) is float) and index >= reading.choices:
        reading.choices = int(min(index, 1e6)) + 1
    delta = choice.get("delta")
    if delta is not None:
        _read_delta(reading, delta)
    finish = choice.get("finish_reason")
    if finish and type(finish) is str:
        reading.finish = finish
        error = finish_error(finish)
        if error is not None:
            reading.error = error
    text = choice.get("text")
    if text and type(text) is str:
        reading.content += len(text)
    message = choice.get("message")
    if message is not None:
        _read_message(reading, message, whole)
    usage = choice.get("usage")
    if usage is not None:
        reading.usage = read_usage(usage)
    if choice.get("error"):
        reading.error = error_in_stream(choice)


def _read_message(reading: Reading, message: Any, whole: bool) -> None:
    if whole:
        _read_delta(reading, message)
        return
    repeated = Reading()
    _read_delta(repeated, message)
    reading.repeat += repeated.content + repeated.reasoning + repeated.tool
    reading.tool_calls_whole += repeated.tool_calls_whole


def _read_delta(reading: Reading, delta: Any) -> None:
    if type(delta) is not dict:
        return
    reasoning = 0
    for key, value in delta.items():
        if not value:
            continue
        if key == "content":
            if type(value) is str:
                reading.content += len(value)
            else:
                _read_parts(reading, value)
        elif key in _REASONING:
            reasoning = max(reasoning, _text_length(value))
        elif key == "reasoning_details":
            reasoning = max(reasoning, _read_details(reading, value))
        elif key not in _SILENT:
            _read_further(reading, key, value)
    reading.reasoning += reasoning
    if "extra_content" in delta:
        _move_thought(reading, delta)


def _read_further(reading: Reading, key: str, value: Any) -> None:
    if key == "tool_calls":
        for call in value if type(value) is list else (value,):
            if type(call) is dict:
                _read_function(reading, call.get("function") or call.get("custom"))
    elif key == "function_call":
        _read_function(reading, value)
    elif key == "refusal":
        reading.content += _text_length(value)
    elif type(value) is dict or type(value) is list or type(value) is str:
        reading.unknown_delta = True


def _move_thought(reading: Reading, delta: Json) -> None:
    """Gemini's compatible endpoint streams summaries of thoughts as content with a flag beside it."""
    extra = delta["extra_content"]
    google = extra.get("google") if type(extra) is dict else None
    content = delta.get("content")
    if type(google) is dict and google.get("thought") is True and type(content) is str:
        reading.content -= len(content)
        reading.reasoning += len(content)
        reading.summarised = True


def _read_parts(reading: Reading, parts: Any) -> None:
    """Content as a list of typed parts, or one part."""
    for part in parts if type(parts) is list else (parts,):
        if type(part) is str:
            reading.content += len(part)
            continue
        if type(part) is not dict:
            continue
        kind = part.get("type")
        if kind in ("thinking", "reasoning"):
            reading.reasoning += max(_text_length(part.get(name)) for name in ("thinking", "reasoning", "text"))
        elif type(part.get("text")) is str:
            reading.content += len(part["text"])
        elif kind == "refusal":
            reading.content += _text_length(part.get("refusal"))
        elif kind not in ("reference", "text"):
            reading.unknown_delta = True


def _read_details(reading: Reading, details: Any) -> int:
    """OpenRouter's and MiniMax's `reasoning_details`."""
    length = 0
    for detail in details if type(details) is list else (details,):
        if type(detail) is not dict:
            continue
        kind = detail.get("type")
        if type(kind) is str and kind in _WITHHELD:
            reading.summarised = True
        length += max(_text_length(detail.get("text")), _text_length(detail.get("summary")))
    return length


def _read_function(reading: Reading, function: Any) -> None:
    if type(function) is not dict:
        return
    name = function.get("name")
    arguments = function.get("arguments") or function.get("input")
    named = 0
    if type(name) is str:
        named = len(name)
        reading.tool += named
    if type(arguments) is str:
        reading.tool += len(arguments)
        if named and arguments and _is_complete(arguments):
            reading.tool_calls_whole += 1
    elif type(arguments) is dict:
        reading.tool += len(json.dumps(arguments, ensure_ascii=False, separators=(",", ":")))
        reading.tool_calls_whole += 1


def _is_complete(arguments: str) -> bool:
    if arguments[-1] != "}":
        return False
    try:
        orjson.loads(arguments)
    except ValueError:
        return False
    return True


def _text_length(value: Any) -> int:
    """Of a text, or of the texts of a list of parts or of one part."""
    if type(value) is str:
        return len(value)
    if type(value) is list:
        return sum(_text_length(item.get("text") if type(item) is dict else item) for item in value[:10_000])
    if type(value) is dict:
        return max(_text_length(value.get("text")), _text_length(value.get("content")))
    return 0


def _text_or_none(value: Any) -> str | None:
    return value if type(value) is str and value else None
