"""The Anthropic dialect: events of a Messages stream, and whole messages."""

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading, Usage
from gateway.core.types import Json, Quirks
from gateway.providers.openai_errors import error_in_stream, error_of_status
from gateway.providers.unreadable import read_no_json
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

# Blocks whose start names something that was generated.
_NAMED = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
# Blocks and deltas that bear no token of the model: signatures, encrypted thinking, what a tool found.
_SILENT_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "fallback", "compaction"})
_SILENT_DELTAS = frozenset({"signature_delta", "citations_delta"})


def read_event(name: bytes | None, payload: bytes) -> Reading:
    """One event. Whatever comes, a Reading is returned: `bad` where it is no JSON object."""
    event = load_object(payload)
    if event is None:
        return read_no_json(name, payload)
    reading = Reading()
    kind = event.get("type")
    if type(kind) is not str:
        kind = (name or b"").decode("utf-8", "replace")
    if kind == "content_block_delta":
        _read_delta(reading, object_at(event, "delta"))
    elif kind == "content_block_start":
        _read_block(reading, object_at(event, "content_block"))
    elif kind == "message_start":
        _read_start(reading, object_at(event, "message"))
    elif kind == "message_delta":
        reading.finish = text_at(object_at(event, "delta"), "stop_reason")
        _read_counts(reading, object_at(event, "usage"))
    elif kind == "message_stop":
        reading.terminal = True
    elif kind == "ping":
        reading.ping = True
    elif kind == "error" or name == b"error" or event.get("error"):
        reading.error = error_in_stream(event)
    return reading


def reader(quirks: Quirks) -> ReadEvent:
    """The reader of one stream: it remembers what the start said of the cache."""
    return StreamReader().read


class StreamReader:
    """Reads the events of one stream in their order."""

    __slots__ = ("_cached", "_written")

    def __init__(self) -> None:
        self._cached: int | None = None
        self._written: int | None = None

    def read(self, name: bytes | None, payload: bytes) -> Reading:
        """One event. An end that restates the uncached prompt alone does not take the cached part away."""
        reading = read_event(name, payload)
        usage = reading.usage
        if usage is not None:
            if usage.cached is None and usage.cache_write is None and not reading.restart:
                usage.cached, usage.cache_write = self._cached, self._written
                if usage.input is not None:
                    usage.input = added(usage.input, self._cached, self._written)
            else:
                self._cached, self._written = usage.cached, usage.cache_write
        return reading


def read_body(payload: bytes) -> Reading:
    """A whole message."""
    body = load_object(payload)
    if body is None:
        return Reading(bad=True)
    if body.get("type") == "error" or body.get("error"):
        return Reading(error=error_in_stream(body))
    reading = Reading(
        model=text_at(body, "model"), response_id=text_at(body, "id"), finish=text_at(body, "stop_reason")
    )
    for block in objects_at(body, "content"):
        _read_block(reading, block)
    _read_counts(reading, object_at(body, "usage"))
    return reading


def _read_start(reading: Reading, message: Json) -> None:
    """`output_tokens` in it is a placeholder: the count comes at the end."""
    reading.restart = True
    reading.model, reading.response_id = text_at(message, "model"), text_at(message, "id")
    _read_counts(reading, object_at(message, "usage"))
    if reading.usage is not None:
        reading.usage.output = reading.usage.reasoning = None


def _read_block(reading: Reading, block: Json) -> None:
    """A block that starts, or a whole one. What it holds already was generated."""
    kind = block.get("type")
    reading.content += length_at(block, "text")
    thought = length_at(block, "thinking")
    reading.reasoning += thought
    reading.summarised = reading.summarised or kind in ("thinking", "redacted_thinking")
    if kind in _NAMED:
        reading.tool += length_at(block, "name")
        if block.get("input"):  # an empty one is the start of what follows in pieces
            reading.tool += compact_length(block["input"])
            reading.tool_calls_whole += 1
    elif kind == "fallback":
        reading.serving_model = text_at(object_at(block, "to"), "model")
    elif kind not in _SILENT_BLOCKS and not reading.content:
        reading.unknown_delta = kind is not None


def _read_delta(reading: Reading, delta: Json) -> None:
    kind = delta.get("type")
    reading.content = length_at(delta, "text")
    reading.reasoning = length_at(delta, "thinking")
    reading.tool = length_at(delta, "partial_json")
    reading.tool_calls_whole = int(is_whole_object(delta.get("partial_json")))
    # What streams as thinking may be a summary of it, and nothing in the stream tells.
    reading.summarised = kind == "thinking_delta"
    if not (reading.content or reading.reasoning or reading.tool) and kind not in _SILENT_DELTAS:
        reading.unknown_delta = kind not in ("text_delta", "thinking_delta", "input_json_delta") and len(delta) > 1


def _read_counts(reading: Reading, usage: Json) -> None:
    """Input counts come apart: uncached, read from the cache, written to it."""
    read, written = count_at(usage, "cache_read_input_tokens"), count_at(usage, "cache_creation_input_tokens")
    plain, output = count_at(usage, "input_tokens"), count_at(usage, "output_tokens")
    speed = text_at(usage, "speed")
    reading.tier = speed if speed == "fast" else text_at(usage, "service_tier") or speed
    if not (plain or read or written or output):
        return  # nothing, or the zeros of a server that counts at the end
    if not (plain or read or written):
        plain = read = written = None  # zeros of a prompt that was counted at the start
    details = object_at(usage, "output_tokens_details")
    reading.usage = Usage(
        input=added(plain, read, written) or None if plain is not None else None,
        cached=read,
        cache_write=written,
        output=output,
        reasoning=count_at(details, "thinking_tokens", "reasoning_tokens"),
    )


class AnthropicReader:
    """The port `WireReader`."""

    name: str = "anthropic"
    framing: str = "sse"
    reader = staticmethod(reader)
    read_event = staticmethod(read_event)
    read_body = staticmethod(read_body)
    read_error = staticmethod(error_of_status)
