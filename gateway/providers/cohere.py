"""Cohere's native dialect (v2 chat): typed events, and whole answers."""

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading, Usage, WireError
from gateway.core.types import Json, Quirks
from gateway.providers.openai_errors import error_in_stream, error_of_status
from gateway.providers.unreadable import read_no_json
from gateway.providers.values import count_at, is_whole_object, length_at, load_object, object_at, objects_at, text_at

_FAILED = frozenset({"ERROR", "TIMEOUT"})


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One event. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    event = load_object(payload)
    if event is None:
        return read_no_json(name, payload)
    reading = Reading()
    kind = event.get("type")
    delta = object_at(event, "delta")
    message = object_at(delta, "message")
    if kind in ("content-delta", "content-start"):
        _read_content(reading, object_at(message, "content"))
    elif kind == "tool-plan-delta":
        reading.reasoning = length_at(message, "tool_plan")
    elif kind in ("tool-call-start", "tool-call-delta"):
        _read_call(reading, object_at(message, "tool_calls"))
    elif kind == "message-start":
        reading.restart, reading.response_id = True, text_at(event, "id")
    elif kind == "message-end":
        _read_end(reading, delta, object_at(delta, "usage"))
        reading.terminal = True
    elif event.get("error") or name == b"error" or (event.get("message") and kind is None):
        reading.error = error_in_stream(event)
    return reading


def reader(quirks: Quirks) -> ReadEvent:
    """Nothing has to be remembered between events."""
    return read_event


def read_body(payload: bytes) -> Reading:
    """A whole answer."""
    body = load_object(payload)
    if body is None:
        return Reading(bad=True)
    message = body.get("message")
    if type(message) is not dict:
        return Reading(error=error_in_stream(body))
    reading = Reading(response_id=text_at(body, "id"), reasoning=length_at(message, "tool_plan"))
    for part in objects_at(message, "content"):
        _read_content(reading, part)
    for call in objects_at(message, "tool_calls"):
        _read_call(reading, call)
    _read_end(reading, body, object_at(body, "usage"))
    return reading


def _read_content(reading: Reading, content: Json) -> None:
    reading.content += length_at(content, "text")
    reading.reasoning += length_at(content, "thinking")


def _read_call(reading: Reading, call: Json) -> None:
    function = object_at(call, "function")
    reading.tool += length_at(function, "name") + length_at(function, "arguments")
    reading.tool_calls_whole += is_whole_object(function.get("arguments"))


def _read_end(reading: Reading, delta: Json, usage: Json) -> None:
    """`tokens` is what the model read and wrote; `billed_units` leaves out what is not charged."""
    reading.finish = text_at(delta, "finish_reason")
    if reading.finish in _FAILED:
        reading.error = WireError("server_error", text_at(delta, "error"), wire_code=reading.finish)
    counts = object_at(usage, "tokens") or object_at(usage, "billed_units")
    prompt, output = count_at(counts, "input_tokens"), count_at(counts, "output_tokens")
    if prompt is not None or output is not None:
        cached = count_at(usage, "cached_tokens")
        reading.usage = Usage(input=prompt, cached=cached, output=output)


class CohereReader:
    """The port `WireReader`."""

    name: str = "cohere"
    framing: str = "sse"
    reader = staticmethod(reader)
    read_event = staticmethod(read_event)
    read_body = staticmethod(read_body)
    read_error = staticmethod(error_of_status)
