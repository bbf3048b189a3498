"""The native Gemini dialect: chunks of streamGenerateContent, which are whole answers that hold only what is new."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading, Usage, WireError
from gateway.core.types import Json, Quirks
from gateway.providers.openai_errors import error_in_stream, error_of_status
from gateway.providers.unreadable import read_no_json
from gateway.providers.values import added, compact_length, count_at, length_at, load, object_at, objects_at, text_at

# Parts that were not generated token by token, or only accompany one that was.
_SILENT = frozenset({"thoughtSignature", "thought", "text", "videoMetadata", "partMetadata"})
# What an enumeration of Google's holds before it was set.
_UNSET = frozenset({"FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})
# Vertex tells the tier as a kind of traffic.
_TRAFFIC: Mapping[str, str] = MappingProxyType(
    {"ON_DEMAND": "standard", "ON_DEMAND_PRIORITY": "priority", "ON_DEMAND_FLEX": "flex"}
)


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One chunk, or a bare error. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    try:
        event = load(payload)
    except (ValueError, RecursionError):
        return read_no_json(name, payload)
    if type(event) is list and len(event) == 1:
        event = event[0]
    if type(event) is not dict:
        return Reading(bad=True)
    reading = Reading()
    if event.get("error"):
        reading.error = _error(event)
        return reading
    candidates = objects_at(event, "candidates")
    for position, candidate in enumerate(candidates):
        _read_candidate(reading, candidate, position)
    reading.model = text_at(event, "modelVersion")
    reading.response_id = text_at(event, "responseId")
    _read_counts(reading, object_at(event, "usageMetadata"), bool(candidates))
    blocked = text_at(object_at(event, "promptFeedback"), "blockReason")
    if blocked is not None and blocked not in _UNSET and not candidates:
        reading.finish = f"blocked:{blocked}"
        reading.error = WireError("content_filter", "the prompt was blocked", wire_code=blocked)
    return reading


def reader(quirks: Quirks) -> ReadEvent:
    """Nothing has to be remembered between chunks."""
    return read_event


def read_body(payload: bytes) -> Reading:
    """A whole answer: it has the shape of a chunk."""
    return read_event(None, payload)


def _error(event: Json) -> WireError:
    """Google's `status` word says more than the number beside it."""
    found = error_in_stream(event)
    status = text_at(object_at(event, "error"), "status")
    if status is not None:
        found.wire_code = status
    return found


def _read_candidate(reading: Reading, candidate: Json, position: int) -> None:
    reading.choices = max(reading.choices, (count_at(candidate, "index") or position) + 1)
    finish = text_at(candidate, "finishReason")
    if finish not in _UNSET:
        reading.finish = finish or reading.finish
    for part in objects_at(object_at(candidate, "content"), "parts"):
        _read_part(reading, part)


def _read_part(reading: Reading, part: Json) -> None:
    text = length_at(part, "text")
    if part.get("thought") is True:
        reading.reasoning += text
        reading.summarised = reading.summarised or text > 0
    else:
        reading.content += text
    call = part.get("functionCall")
    if type(call) is dict:
        _read_call(reading, call)
    code = part.get("executableCode")
    if type(code) is dict:
        reading.tool += length_at(code, "code")
    elif type(call) is not dict and not _SILENT.issuperset(part):
        reading.unknown_delta = True


def _read_call(reading: Reading, call: Json) -> None:
    """A call comes whole, but for Vertex's streamed arguments."""
    reading.tool += length_at(call, "name")
    partial = objects_at(call, "partialArgs")
    for piece in partial:
        reading.tool += sum(_value_length(value) for key, value in piece.items() if key.endswith("Value"))
    if call.get("args") is not None:
        reading.tool += compact_length(call["args"])
    if not partial and not call.get("willContinue") and (call.get("name") or call.get("args")):
        reading.tool_calls_whole += 1


def _value_length(value: Any) -> int:
    return len(value) if type(value) is str else compact_length(value)


def _read_counts(reading: Reading, usage: Json, answers: bool) -> None:
    """Cumulative in every chunk; thoughts are counted beside the candidates. No count beside an answer is no zero."""
    prompt, total = count_at(usage, "promptTokenCount"), count_at(usage, "totalTokenCount")
    answer, thoughts = count_at(usage, "candidatesTokenCount"), count_at(usage, "thoughtsTokenCount")
    traffic = text_at(usage, "trafficType")
    reading.tier = text_at(usage, "serviceTier") or _TRAFFIC.get(traffic or "", traffic)
    if prompt is None and answer is None and total is None:
        return
    searched = count_at(usage, "toolUsePromptTokenCount")
    known = not (answer is None and thoughts is None and answers)
    reading.usage = Usage(
        input=added(prompt, searched),
        cached=count_at(usage, "cachedContentTokenCount"),
        output=(answer or 0) + (thoughts or 0) if known else None,
        reasoning=(thoughts or 0) if known else None,
    )


class GeminiReader:
    """The port `WireReader`."""

    name: str = "gemini"
    framing: str = "sse"
    reader = staticmethod(reader)
    read_event = staticmethod(read_event)
    read_body = staticmethod(read_body)
    read_error = staticmethod(error_of_status)
