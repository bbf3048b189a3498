"""What is no JSON in a stream of JSON: an end marker, a sign of life, an error in plain words; else it is bad."""

from gateway.core.reading import Reading
from gateway.providers.openai_errors import error_in_stream

# Names of events that only say that the connection lives.
SIGNS_OF_LIFE = frozenset({b"ping", b"keepalive", b"keep-alive", b"heartbeat"})
_LONGEST_WORDS = 8000


def read_no_json(name: bytes | None, payload: bytes) -> Reading:
    """The event that no JSON object could be read from."""
    words = payload.strip()
    if words == b"[DONE]":
        return Reading(terminal=True)
    if name == b"error":
        return Reading(error=error_in_stream(payload[:_LONGEST_WORDS].decode("utf-8", "replace")))
    if not words or name in SIGNS_OF_LIFE:
        return Reading(ping=True)
    return Reading(bad=True)
