"""What one stream of the OpenAI dialect needs remembered: thinking inside the answer, reasoning repeated as it grows.

Both are told by the first events that bear text. From then on an ordinary stream costs one call more per event.
"""

from typing import Any

from gateway.core.ports import ReadEvent
from gateway.core.reading import Reading
from gateway.core.types import Json, Quirks
from gateway.providers.openai_delta import CLOSING, OPENING
from gateway.providers.openai_events import read_event
from gateway.providers.values import load_object, object_at, objects_at

_DETAILS = b'"reasoning_details"'
# A text that grows is compared with itself; beyond this it is taken to go on as it began.
_LONGEST_KEPT = 1 << 20


def reader(quirks: Quirks) -> ReadEvent:
    """The reader of one stream. Servers are not asked what they do: the stream itself tells."""
    return StreamReader().read


class StreamReader:
    """Reads the events of one stream in their order."""

    __slots__ = ("_details", "_details_known", "_opening", "_state", "_tail")

    def __init__(self) -> None:
        self._state: ReadEvent = self._undecided
        # The answer's first characters, while they may yet become the opening tag.
        self._opening = ""
        # The last characters of the thinking: a tag may be split anywhere.
        self._tail = ""
        self._details = ""
        self._details_known = False

    def read(self, name: bytes | None, payload: bytes) -> Reading:
        """One event."""
        return self._state(name, payload)

    def _undecided(self, name: bytes | None, payload: bytes) -> Reading:
        reading = read_event(name, payload)
        if reading.reasoning and not self._details_known:
            if payload.find(_DETAILS) >= 0:
                self._compare(reading, _delta(payload))
            else:
                self._details_known = True
        if reading.content:
            self._look_for_opening(reading, _delta(payload))
        return reading

    def _look_for_opening(self, reading: Reading, delta: Json) -> None:
        text = delta.get("content")
        if type(text) is not str:
            self._state = read_event
            return
        before, self._opening = self._opening, (self._opening + text).lstrip()
        if self._opening.startswith(OPENING):
            self._state = self._thinking
            self._sort(reading, text, self._opening[len(OPENING) :])
        elif not OPENING.startswith(self._opening):
            self._state = read_event
            self._shift(reading, -len(before))  # what looked like a tag was answer
        elif self._opening:
            # As much as is given back if it turns out to be answer: what is new of the tag, without blanks before it.
            self._shift(reading, len(self._opening) - len(before))

    @staticmethod
    def _shift(reading: Reading, chars: int) -> None:
        """Moves characters from the answer to the thinking. Blanks before a tag stay with the answer."""
        reading.content -= chars
        reading.reasoning += chars
        reading.plain = reading.plain and not chars

    def _thinking(self, name: bytes | None, payload: bytes) -> Reading:
        reading = read_event(name, payload)
        if not reading.content:
            return reading
        if "<" not in self._tail and payload.find(b"<") < 0 and payload.find(b"\\u003") < 0:
            self._tail = ""  # no part of a tag: all of it is thinking, and need not be parsed again
            self._shift(reading, reading.content)
            return reading
        text = _delta(payload).get("content")
        if type(text) is str:
            self._sort(reading, text, text)
        return reading

    def _sort(self, reading: Reading, text: str, searched: str) -> None:
        """Thinking up to the closing tag, which belongs to it; the answer after it."""
        seen = self._tail + searched
        at = seen.find(CLOSING)
        answer = len(seen) - at - len(CLOSING) if at >= 0 else 0
        self._shift(reading, max(0, len(text) - answer))
        self._tail = seen[-len(CLOSING) + 1 :]
        if at >= 0:
            self._state = read_event

    def _compare(self, reading: Reading, delta: Json) -> None:
        """Reasoning details that begin with all that came before are a growing text; else they are pieces."""
        text = _details_of(delta)
        if not self._details:
            self._details, self._details_known = text, not text
        elif len(text) > len(self._details) and text.startswith(self._details) and text not in _said(delta):
            self._state = self._growing
            self._grow(reading, delta, text)
        else:
            self._details_known = True

    def _growing(self, name: bytes | None, payload: bytes) -> Reading:
        reading = read_event(name, payload)
        if reading.reasoning:
            delta = _delta(payload)
            self._grow(reading, delta, _details_of(delta))
        return reading

    def _grow(self, reading: Reading, delta: Json, text: str) -> None:
        """Only what is new was generated."""
        if not text.startswith(self._details):
            return
        said = delta.get("reasoning_content") or delta.get("reasoning")
        fresh = len(text) - len(self._details)
        reading.reasoning = max(fresh, len(said) if type(said) is str and len(said) < len(text) else 0)
        if len(text) <= _LONGEST_KEPT:
            self._details = text


def _said(delta: Json) -> tuple[Any, ...]:
    """The reasoning under its other names. Where it is the same text, this text is a piece and no sum."""
    return delta.get("reasoning_content"), delta.get("reasoning")


def _delta(payload: bytes) -> Json:
    choices = objects_at(load_object(payload), "choices")
    return object_at(choices[0], "delta") if choices else {}


def _details_of(delta: Json) -> str:
    texts = (detail.get("text") for detail in objects_at(delta, "reasoning_details"))
    return "".join(text for text in texts if type(text) is str)
