"""OpenAI's Responses: typed events with sequence numbers, and whole responses."""

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading
from gateway.core.types import Json, Quirks
from gateway.providers.openai_errors import error_in_stream, error_of_status
from gateway.providers.openai_usage import read_clock, read_usage
from gateway.providers.values import length_at, load_object, object_at, objects_at, text_at

# Events whose `delta` is a piece of what was generated, by kind. All others with a delta are of a kind we do not know.
_CONTENT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_REASONING = frozenset({"response.reasoning_text.delta", "response.reasoning.delta"})
_SUMMARY = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_summary.delta"})
_TOOL = frozenset(
    {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
    | {"response.mcp_call_arguments.delta", "response.code_interpreter_call_code.delta"}
)
_SIGNS_OF_LIFE = frozenset({"keepalive", "ping", "response.keep_alive", "response.heartbeat"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.cancelled"})


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One event. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    if payload == b"[DONE]":
        return Reading(terminal=True)
    event = load_object(payload)
    if event is None:
        return Reading(bad=True)
    reading = Reading()
    kind = event.get("type")
    if type(kind) is not str:
        kind = (name or b"").decode("utf-8", "replace")
    if kind.endswith(".delta"):
        _read_delta(reading, kind, event)
    elif kind in _SIGNS_OF_LIFE:
        reading.ping = True
    elif kind == "response.output_item.added":
        reading.tool = length_at(object_at(event, "item"), "name")
    elif kind.endswith(".done"):
        _read_done(reading, kind, event)
    elif kind in _ENDS:
        _read_end(reading, object_at(event, "response"), kind)
    elif kind == "response.failed":
        _read_names(reading, object_at(event, "response"))
        reading.error = error_in_stream(object_at(event, "response"))
    elif kind == "error" or name == b"error" or event.get("error"):
        reading.error = error_in_stream(event)
    elif kind in ("response.created", "response.queued", "response.in_progress"):
        reading.restart = kind == "response.created"
        _read_names(reading, object_at(event, "response"))
    return reading


def reader(quirks: Quirks) -> ReadEvent:
    """Nothing has to be remembered between events."""
    return read_event


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
    elif kind in _REASONING:
        reading.reasoning = length
    elif kind in _SUMMARY:
        reading.reasoning, reading.summarised = length, True
    elif event.get("delta"):
        reading.unknown_delta = True


def _read_done(reading: Reading, kind: str, event: Json) -> None:
    """What is done repeats what was streamed; it counts only where nothing was."""
    if kind in ("response.output_text.done", "response.refusal.done"):
        reading.repeat = length_at(event, "text") or length_at(event, "refusal")


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
