"""Recorded streams through framer, dialect and meter, as the dispatcher would play them."""

import json
import struct
from pathlib import Path
from typing import Any

from gateway.core.reading import Reading, WireError
from gateway.core.record import Measurement
from gateway.core.types import Quirks
from gateway.metering.meter import Meter
from gateway.providers.dialects import READERS
from gateway.upstream.framers import FRAMERS
from gateway.upstream.sse import Event

FIXTURES = Path(__file__).parent.parent / "fixtures" / "wire"
EXPECT: dict[str, Any] = json.loads((FIXTURES / "EXPECT.json").read_text("utf-8"))

_DIALECTS = {
    "anthropic-": "anthropic",
    "gemini-native-": "gemini",
    "openai-responses-": "responses",
    "bedrock-": "bedrock",
    "cohere-v2-": "cohere",
    "ollama-native": "ollama",
}


def dialect_of(name: str) -> str:
    return next((dialect for prefix, dialect in _DIALECTS.items() if name.startswith(prefix)), "openai")


class Replay:
    """Plays a stream and keeps what a dispatcher would keep. `moments` holds (what, number of the event)."""

    def __init__(self, dialect: str, quirks: Quirks | None = None) -> None:
        wire = READERS[dialect]
        self.dialect = dialect
        self.framer = FRAMERS[wire.framing]()
        self.read_event = wire.reader(quirks or Quirks())
        self.meter = Meter(0.0)
        self.error: WireError | None = None
        self.done = False
        self.pings = 0
        self.finish: str | None = None
        # Numbers of bytes fed when an event was complete, by what it was.
        self.fed = 0
        self.seen: dict[str, int] = {}

    def feed(self, data: bytes, at: float) -> None:
        before = self.fed
        self.fed += len(data)
        self._take(self.framer.feed(data), at, before)

    def flush(self, at: float) -> None:
        self._take(self.framer.flush(), at, self.fed)

    def _take(self, events: list[Event], at: float, before: int) -> None:
        for event in events:
            for _ in range(event.comments):
                self.meter.comment()
            if event.data is not None:
                self._note(self.read_event(event.name, event.data), at, before)

    def _note(self, reading: Reading, at: float, before: int) -> None:
        self.pings += reading.ping
        bears = bool(reading.content or reading.reasoning or reading.tool)
        for what, holds in (
            ("event", not reading.ping),
            ("token", bears),
            ("answer", bool(reading.content or reading.tool)),
            ("error", reading.error is not None),
        ):
            if holds:
                self.seen.setdefault(what, before)
        if bears:
            self.seen["last_token"] = before
        if reading.usage is not None:
            self.seen["usage"] = before
        self.meter.observe(reading, at)
        self.error = self.error or reading.error
        self.finish = reading.finish or self.finish
        self.done = self.done or reading.terminal

    @property
    def ended(self) -> bool:
        """Gemini has no end marker: its finish reason is one, where nothing failed."""
        return self.done or (self.dialect == "gemini" and self.finish is not None and self.error is None)

    def result(self, at: float) -> Measurement:
        if self.error is not None:
            return self.meter.finish("error", at)
        return self.meter.finish("ok" if self.meter.terminated else "truncated", at)


def lines_of(name: str) -> list[bytes]:
    """Physical lines; the messages of a binary stream."""
    data = (FIXTURES / name).read_bytes()
    if not name.endswith(".eventstream"):
        return data.splitlines(keepends=True)
    messages = []
    while data:
        (size,) = struct.unpack_from(">I", data)
        messages.append(data[:size])
        data = data[size:]
    return messages


def reads_of(name: str) -> list[tuple[bytes, float]]:
    """The bytes of each read with its moment in seconds."""
    lines = lines_of(name)
    arrivals = EXPECT[name]["arrivals"]
    ends = [line - 1 for line, _ in arrivals[1:]] + [len(lines)]
    return [(b"".join(lines[line - 1 : end]), ms / 1000) for (line, ms), end in zip(arrivals, ends, strict=True)]


def play(name: str) -> tuple[Measurement, Replay]:
    replay, at = Replay(dialect_of(name)), 0.0
    for data, at in reads_of(name):
        replay.feed(data, at)
    replay.flush(at)
    return replay.result(at), replay


def play_split(name: str, cuts: list[int]) -> tuple[Measurement, Replay]:
    """The same bytes in pieces that end anywhere, a millisecond apart."""
    data = (FIXTURES / name).read_bytes()
    replay, start = Replay(dialect_of(name)), 0
    for cut in [*sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]:
        replay.feed(data[start:cut], start / 1000)
        start = cut
    replay.flush(len(data) / 1000)
    return replay.result(len(data) / 1000), replay
