"""Events and answers of the OpenAI dialect, read into the neutral `Reading`. Runs once per chunk of every stream."""

from typing import Any

import orjson

from gateway.core.reading import Reading, WireError
from gateway.core.types import Json
from gateway.providers.openai_delta import read_delta, read_message, read_plain_delta
from gateway.providers.openai_errors import base_resp_error, error_in_stream, finish_error
from gateway.providers.openai_usage import CLOCK_KEYS, cached_by_server, read_clock, read_usage
from gateway.providers.unreadable import SIGNS_OF_LIFE, read_no_json
from gateway.providers.values import encodable, load

# Keys of an ordinary chunk. An event with nothing else in it skips every search for vendors' extras.
_ORDINARY = frozenset(
    {"id", "object", "created", "model", "system_fingerprint", "choices", "service_tier", "obfuscation", "provider"}
    | {"usage", "citations"}
)


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One event. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    if payload == b"[DONE]":
        return Reading(terminal=True)
    try:
        event = orjson.loads(payload)
    except ValueError:
        return _read_oddity(name, payload)
    reading = Reading()
    if name is None and _read_plain(reading, event):
        return reading
    try:
        _read(reading, name, event)
    except RecursionError:
        return Reading(bad=True)
    return reading


def _read_plain(reading: Reading, event: Any) -> bool:
    """The commonest chunk: one choice, a piece of text or reasoning, nothing else. False, untouched, for any other.

    A shorter way to what `_read` finds, at half of its time.
    """
    try:
        choices = event["choices"]
        choice = choices[0]
        delta = choice["delta"]
        content = delta.get("content")
    except (KeyError, IndexError, TypeError, AttributeError):
        return False
    # `delta`, `index` and `finish_reason` are there; one more key may only be `logprobs`.
    if len(choices) != 1 or choice.get("finish_reason", 0) is not None or choice.get("index") != 0:
        return False
    if len(choice) != 3 and (len(choice) != 4 or "logprobs" not in choice):
        return False
    if event.get("usage") is not None or "error" in event or "base_resp" in event or "timings" in event:
        return False
    if type(content) is str and len(delta) == 1:
        reading.content = len(content)
    elif not read_plain_delta(reading, delta):
        return False
    if not (reading.content or reading.reasoning) and not _ORDINARY.issuperset(event):
        return False  # nothing was generated: the event is there for what else is in it
    value = event.get("model")
    if value and type(value) is str:
        reading.model = value
    value = event.get("id")
    if value and type(value) is str:
        reading.response_id = value
    value = event.get("service_tier")
    if value and type(value) is str:
        reading.tier = value
    reading.plain = True
    return True


def read_body(payload: bytes) -> Reading:
    """A whole answer. Its `message` is what was generated, not a repetition."""
    reading = Reading()
    try:
        _read(reading, None, load(payload), whole=True)
    except (ValueError, RecursionError):
        return Reading(bad=True)
    return _clean(reading)


def _read_oddity(name: bytes | None, payload: bytes) -> Reading:
    """What orjson refuses: a lax server's JSON, the end marker with blanks around it, and what is no JSON at all."""
    reading = Reading()
    try:
        _read(reading, name, load(payload))
    except (ValueError, RecursionError):
        return read_no_json(name, payload)
    return _clean(reading)


def _clean(reading: Reading) -> Reading:
    """Half a surrogate pair must not travel on in what is kept: it cannot be encoded again."""
    for name in ("model", "tier", "response_id", "finish"):
        text = getattr(reading, name)
        setattr(reading, name, None if text is None else encodable(text))
    return reading


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
    _read_names(reading, event)
    has_choices = type(choices) is list
    usage = event.get("usage")
    if usage is not None or not _ORDINARY.issuperset(event):
        _read_extras(reading, name, event, usage, has_choices)
    elif name == b"error" or (not has_choices and event.get("object") == "error"):
        reading.error = error_in_stream(event)
    if not has_choices and reading.error is None:
        reading.ping = name in SIGNS_OF_LIFE or event.get("type") == "ping"


def _read_names(reading: Reading, event: Json) -> None:
    value = event.get("model")
    if value and type(value) is str:
        reading.model = value
    value = event.get("id")
    if value and type(value) is str:
        reading.response_id = value
    value = event.get("service_tier")
    if value and type(value) is str:
        reading.tier = value


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
        or ((event.get("message") or event.get("msg")) and event.get("code"))
    ):
        return error_in_stream(event)
    return None


def _read_choice(reading: Reading, choice: Json, whole: bool) -> None:
    index = choice.get("index")
    if index and (type(index) is int or type(index) is float) and index >= reading.choices:
        reading.choices = int(min(index, 1e6)) + 1
    delta = choice.get("delta")
    if delta is not None:
        read_delta(reading, delta)
    finish = choice.get("finish_reason")
    if finish and type(finish) is str:
        reading.finish = finish
        error = finish_error(finish)
        if error is not None:
            reading.error = error
    text = choice.get("text")
    if text and type(text) is str and not (type(delta) is dict and delta.get("content")):
        reading.content += len(text)  # Together sends the same under both names
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
        read_message(reading, message)
        return
    repeated = Reading()
    read_delta(repeated, message)
    reading.repeat += repeated.content + repeated.reasoning + repeated.tool
    reading.tool_calls_whole += repeated.tool_calls_whole


def _text_or_none(value: Any) -> str | None:
    return value if type(value) is str and value else None
