"""Ollama's native dialect (/api/chat, /api/generate): one JSON object a line, durations in nanoseconds."""

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading, Usage
from gateway.core.types import Json, Quirks
from gateway.providers.openai_errors import error_in_stream, error_of_status
from gateway.providers.unreadable import read_no_json
from gateway.providers.values import compact_length, count_at, length_at, load_object, object_at, objects_at, text_at

_NANOSECONDS = (
    ("load_duration", "queue_ms"),
    ("prompt_eval_duration", "prompt_ms"),
    ("eval_duration", "completion_ms"),
    ("total_duration", "total_ms"),
)


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One line. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    line = load_object(payload)
    if line is None:
        return read_no_json(name, payload)
    if line.get("error"):
        return Reading(error=error_in_stream(line))
    message = object_at(line, "message")
    reading = Reading(
        content=length_at(message, "content") + length_at(line, "response"),
        reasoning=length_at(message, "thinking") + length_at(line, "thinking"),
        model=text_at(line, "model"),
    )
    for call in objects_at(message, "tool_calls"):
        function = object_at(call, "function")
        reading.tool += length_at(function, "name") + compact_length(function.get("arguments"))
        reading.tool_calls_whole += 1
    if line.get("done") is True:
        _read_end(reading, line)
    return reading


def reader(quirks: Quirks) -> ReadEvent:
    """Nothing has to be remembered between lines."""
    return read_event


def read_body(payload: bytes) -> Reading:
    """A whole answer: it has the shape of the last line."""
    reading = read_event(None, payload)
    reading.terminal = False
    return reading


def _read_end(reading: Reading, line: Json) -> None:
    reading.terminal = True
    reading.finish = text_at(line, "done_reason") or "stop"
    prompt, output = count_at(line, "prompt_eval_count"), count_at(line, "eval_count")
    if prompt or output:
        reading.usage = Usage(input=prompt, output=output)
    clock = {ours: value / 1e6 for theirs, ours in _NANOSECONDS if (value := count_at(line, theirs)) is not None}
    reading.server_clock = clock or None


class OllamaReader:
    """The port `WireReader`."""

    name: str = "ollama"
    framing: str = "ndjson"
    reader = staticmethod(reader)
    read_event = staticmethod(read_event)
    read_body = staticmethod(read_body)
    read_error = staticmethod(error_of_status)
