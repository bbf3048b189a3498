"""The Bedrock dialect: messages of a Converse stream, and whole Converse answers."""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading, Usage, WireError
from gateway.core.types import Json, Quirks
from gateway.providers.openai_errors import error_of_status
from gateway.providers.values import (
    added,
    compact_length,
    count_at,
    is_whole_object,
    length_at,
    load_object,
    object_at,
    objects_at,
    text_at,
)

# How the framer names an exception, and a frame whose checksum is wrong.
EXCEPTION = b"exception:"
CORRUPT = b"corrupt:"
_EXCEPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "throttlingexception": "rate_limited",
        "modelnotreadyexception": "overloaded",
        "serviceunavailableexception": "overloaded",
        "servicequotaexceededexception": "quota",
        "accessdeniedexception": "auth",
        "unrecognizedclientexception": "auth",
        "expiredtokenexception": "auth",
        "resourcenotfoundexception": "not_found",
        "validationexception": "bad_request",
        "modeltimeoutexception": "server_error",
        "internalserverexception": "server_error",
        "modelerrorexception": "server_error",
        "modelstreamerrorexception": "server_error",
    }
)


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One message, by its event type. Whatever comes, a Reading is returned."""
    if name is not None and name.startswith(CORRUPT):
        return Reading(bad=True, error=WireError("malformed", "a frame of the stream is damaged"))
    message = load_object(payload)
    if name is not None and name.startswith(EXCEPTION):
        return Reading(error=_exception(name[len(EXCEPTION) :], message or {}))
    if message is None:
        return Reading(bad=True)
    reading = Reading()
    kind = (name or b"").decode("utf-8", "replace")
    if kind == "contentBlockDelta":
        _read_delta(reading, object_at(message, "delta"))
    elif kind == "contentBlockStart":
        reading.tool = length_at(object_at(object_at(message, "start"), "toolUse"), "name")
    elif kind == "messageStart":
        reading.restart = True
    elif kind == "messageStop":
        reading.finish = text_at(message, "stopReason")
    elif kind == "metadata":
        # The usage comes after the end of the message, and nothing after the usage.
        _read_metadata(reading, message)
        reading.terminal = True
    elif kind.endswith("Exception"):
        reading.error = _exception(kind.encode(), message)
    return reading


def reader(quirks: Quirks) -> ReadEvent:
    """Nothing has to be remembered between messages."""
    return read_event


def read_body(payload: bytes) -> Reading:
    """A whole Converse answer."""
    body = load_object(payload)
    if body is None:
        return Reading(bad=True)
    reading = Reading(finish=text_at(body, "stopReason"))
    for block in objects_at(object_at(object_at(body, "output"), "message"), "content"):
        reading.content += length_at(block, "text")
        reading.reasoning += length_at(object_at(object_at(block, "reasoningContent"), "reasoningText"), "text")
        call = object_at(block, "toolUse")
        if call:
            reading.tool += length_at(call, "name") + compact_length(call.get("input"))
    _read_metadata(reading, body)
    return reading


def _exception(kind: bytes, message: Json) -> WireError:
    word = kind.decode("utf-8", "replace")[:64]
    code = _EXCEPTIONS.get(word.lower(), "server_error")
    return WireError(code, text_at(message, "message", "Message", "originalMessage"), wire_code=word)


def _read_delta(reading: Reading, delta: Json) -> None:
    reading.content = length_at(delta, "text")
    call = object_at(delta, "toolUse")
    reading.tool = length_at(call, "input")
    reading.tool_calls_whole = int(is_whole_object(call.get("input")))
    thought = object_at(delta, "reasoningContent")
    reading.reasoning = length_at(thought, "text")
    # Only Claude signs its thinking, and what it streams of it may be a summary.
    reading.summarised = bool(thought.get("signature") or thought.get("redactedContent"))
    if not ("text" in delta or "toolUse" in delta or "reasoningContent" in delta or "citation" in delta) and delta:
        reading.unknown_delta = True


def _read_metadata(reading: Reading, message: Json) -> None:
    usage = object_at(message, "usage")
    read, written = count_at(usage, "cacheReadInputTokens"), count_at(usage, "cacheWriteInputTokens")
    prompt, output = count_at(usage, "inputTokens"), count_at(usage, "outputTokens")
    if prompt is not None or output is not None:
        reading.usage = Usage(input=added(prompt, read, written), cached=read, cache_write=written, output=output)
    served = text_at(object_at(message, "performanceConfig"), "latency")
    reading.tier = served if served == "optimized" else text_at(object_at(message, "serviceTier"), "type")
    took = count_at(object_at(message, "metrics"), "latencyMs")
    reading.server_clock = None if took is None else {"total_ms": float(took)}


class BedrockReader:
    """The port `WireReader`."""

    name: str = "bedrock"
    framing: str = "aws"
    reader = staticmethod(reader)
    read_event = staticmethod(read_event)
    read_body = staticmethod(read_body)
    read_error = staticmethod(error_of_status)
