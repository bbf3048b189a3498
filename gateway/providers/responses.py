"""OpenAI's Responses: typed events with sequence numbers, and whole responses."""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading
from gateway.core.types import Json, Quirks
from gateway.providers.openai_errors import error_in_stream, error_of_status
from gateway.providers.openai_usage import read_clock, read_usage
from gateway.providers.unreadable import SIGNS_OF_LIFE, read_no_json
from gateway.providers.values import is_whole_object, length_at, load_object, object_at, objects_at, text_at

# Events whose `delta` is a piece of what was generated, by kind. All others with a delta are of a kind we do not know.
_CONTENT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_REASONING = frozenset({"response.reasoning_text.delta", "response.reasoning.delta"})
_SUMMARY = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_summary.delta"})
_TOOL = frozenset(
    {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
    | {"response.mcp_call_arguments.delta", "response.code_interpreter_call_code.delta"}
)
# What is told once more, or for the first time, when a part of the answer is complete: where, and as which kind.
_DONE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "response.output_text.done": ("text", "content"),
        "response.refusal.done": ("refusal", "content"),
        "response.reasoning_text.done": ("text", "reasoning"),
        "response.reasoning_summary_text.done": ("text", "reasoning"),
        "response.function_call_arguments.done": ("arguments", "tool"),
        "response.mcp_call_arguments.done": ("arguments", "tool"),
        "response.custom_tool_call_input.done": ("input", "tool"),
        "response.code_interpreter_call_code.done": ("code", "tool"),
    }
)
_SUMMARIES_DONE = frozenset({"response.reasoning_summary_text.done"})
# Beyond so many parts what is done is taken for a repetition.
_MOST_PARTS = 1000
_SIGNS_OF_LIFE = frozenset({"response.keep_alive", "response.heartbeat"}.union(map(bytes.decode, SIGNS_OF_LIFE)))
_ENDS = frozenset({"response.completed", "response.incomplete", "response.cancelled"})


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One event. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    event = load_object(payload)
    return read_no_json(name, payload) if event is None else _read(name, event)


def _read(name: bytes | None, event: Json) -> Reading:
    reading = Reading()
    kind = _kind(name, event)
    if kind.endswith(".delta"):
        _read_delta(reading, kind, event)
    elif kind in _SIGNS_OF_LIFE:
        reading.ping = True
    elif kind == "response.output_item.added":
        reading.tool = length_at(object_at(event, "item"), "name")
    elif kind in _DONE:
        reading.repeat = length_at(event, _DONE[kind][0])
        reading.summarised = kind in _SUMMARIES_DONE
    elif kind in _ENDS:
        _read_end(reading, object_at(event, "response"), kind)
    elif kind == "response.failed":
        response = object_at(event, "response")
        _read_names(reading, response)
        reading.usage = read_usage(response.get("usage"))
        reading.error = error_in_stream(response)
        reading.terminal = True
    elif kind == "error" or name == b"error" or event.get("error"):
        reading.error = error_in_stream(event)
    elif kind in ("response.created", "response.queued", "response.in_progress"):
        reading.restart = kind == "response.created"
        _read_names(reading, object_at(event, "response"))
    return reading


def reader(quirks: Quirks) -> ReadEvent:
    """The reader of one stream: it remembers which parts of the answer were streamed."""
    return StreamReader().read


class StreamReader:
    """Reads the events of one stream in their order."""

    __slots__ = ("_streamed",)

    def __init__(self) -> None:
        self._streamed: set[tuple[str, str | int | None]] = set()

    def read(self, name: bytes | None, payload: bytes) -> Reading:
        """One event. What is done was generated now where no piece of it came before, else it is a repetition."""
        event = load_object(payload)
        if event is None:
            return read_no_json(name, payload)
        reading = _read(name, event)
        if reading.repeat:
            self._complete(reading, _kind(name, event), event)
        elif (reading.content or reading.reasoning or reading.tool) and len(self._streamed) < _MOST_PARTS:
            self._streamed.add(_part(_kind(name, event), event))
        return reading

    def _complete(self, reading: Reading, kind: str, event: Json) -> None:
        if len(self._streamed) >= _MOST_PARTS or _part(kind, event) in self._streamed:
            return
        generated = _DONE[kind][1]
        setattr(reading, generated, reading.repeat)
        reading.repeat = 0
        reading.tool_calls_whole = int(generated == "tool")


def _kind(name: bytes | None, event: Json) -> str:
    kind = event.get("type")
    return kind if type(kind) is str else (name or b"").decode("utf-8", "replace")


def _part(kind: str, event: Json) -> tuple[str, str | int | None]:
    """Which part of the answer: some servers give every event an id of its own, so its place speaks first."""
    place = event.get("output_index")
    return kind.rpartition(".")[0], place if type(place) is int else text_at(event, "item_id")


def read_body(payload: bytes) -> Reading:
    """A whole response."""
    body = load_object(payload)
    if body is None:
        return Reading(bad=True)
    if body.get("error") or body.get("status") == "failed":
        return Reading(error=error_in_stream(body))
    reading = Reading()
    for item in objects_at(body, "output"):
        _read_item(reading, item)
    _read_end(reading, body, "response." + (text_at(body, "status") or "completed"))
    reading.terminal = False
    return reading


def _read_delta(reading: Reading, kind: str, event: Json) -> None:
    length = length_at(event, "delta")
    if kind in _CONTENT:
        reading.content = length
    elif kind in _TOOL:
        reading.tool = length
        reading.tool_calls_whole = int(is_whole_object(event.get("delta")))
    elif kind in _REASONING:
        reading.reasoning = length
    elif kind in _SUMMARY:
        reading.reasoning, reading.summarised = length, True
    elif event.get("delta"):
        reading.unknown_delta = True


def _read_end(reading: Reading, response: Json, kind: str) -> None:
    _read_names(reading, response)
    reading.terminal = True
    status = kind.removeprefix("response.")
    reading.finish = text_at(object_at(response, "incomplete_details"), "reason") or status
    usage = response.get("usage")
    reading.usage = read_usage(usage)
    reading.server_clock = read_clock(response, (usage,))


def _read_names(reading: Reading, response: Json) -> None:
    reading.model, reading.response_id = text_at(response, "model"), text_at(response, "id")
    reading.tier = text_at(response, "service_tier")


def _read_item(reading: Reading, item: Json) -> None:
    """One item of a whole response."""
    for part in objects_at(item, "content"):
        length = length_at(part, "text") or length_at(part, "refusal")
        if part.get("type") == "reasoning_text":
            reading.reasoning += length
        else:
            reading.content += length
    for part in objects_at(item, "summary"):
        reading.reasoning += length_at(part, "text")
        reading.summarised = True
    if item.get("name"):
        reading.tool += length_at(item, "name") + length_at(item, "arguments") + length_at(item, "input")


class ResponsesReader:
    """The port `WireReader`."""

    name: str = "responses"
    framing: str = "sse"
    reader = staticmethod(reader)
    read_event = staticmethod(read_event)
    read_body = staticmethod(read_body)
    read_error = staticmethod(error_of_status)
