"""Streams as vendors send them, through framer, dialect and meter: every reading must come out exactly."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.core.reading import WireError
from gateway.core.record import Measurement
from gateway.metering.meter import Meter
from gateway.providers.dialects import DIALECTS
from gateway.upstream.sse import Event, Framer

FIXTURES = Path(__file__).parent.parent / "fixtures" / "wire"
EXPECT: dict[str, Any] = json.loads((FIXTURES / "EXPECT.json").read_text("utf-8"))
DIALECT = DIALECTS["openai"]


class Replay:
    """Plays a stream with its arrival times and keeps what a dispatcher would keep."""

    def __init__(self) -> None:
        self.meter = Meter(0.0)
        self.error: WireError | None = None
        self.error_line: int | None = None
        self.done = False

    def take(self, events: list[Event], at: float) -> None:
        for event in events:
            for _ in range(event.comments):
                self.meter.comment()
            if event.data is None:
                continue
            reading = DIALECT.read_event(event.name, event.data)
            self.meter.observe(reading, at)
            self.error = self.error or reading.error
            self.done = self.done or reading.terminal

    def result(self, at: float) -> Measurement:
        if self.error is not None:
            return self.meter.finish("error", at)
        return self.meter.finish("ok" if self.meter.terminated else "truncated", at)


def reads_of(name: str) -> list[tuple[bytes, float]]:
    """The bytes of each read with its moment in seconds."""
    lines = (FIXTURES / name).read_bytes().splitlines(keepends=True)
    arrivals = EXPECT[name]["arrivals"]
    ends = [line - 1 for line, _ in arrivals[1:]] + [len(lines)]
    return [(b"".join(lines[line - 1 : end]), ms / 1000) for (line, ms), end in zip(arrivals, ends, strict=True)]


def play(name: str) -> tuple[Measurement, Replay]:
    replay, framer, at = Replay(), Framer(), 0.0
    for data, at in reads_of(name):
        replay.take(framer.feed(data), at)
    replay.take(framer.flush(), at)
    return replay.result(at), replay


def tenth(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def line_ms(name: str, line: int | None) -> float | None:
    """When this physical line arrived."""
    if line is None:
        return None
    return max((ms for first, ms in EXPECT[name]["arrivals"] if first <= line), default=None)


def seen(measured: Measurement, replay: Replay) -> dict[str, Any]:
    tokens, chars, timing, speed = measured.tokens, measured.chars, measured.timing, measured.speed
    counted = tokens.source == "usage"
    return {
        "ttft_ms": tenth(timing.ttft_ms),
        "ttfa_ms": tenth(timing.ttfa_ms),
        "content_chars": chars.content,
        "reasoning_chars": chars.reasoning,
        "tool_chars": chars.tool,
        "token_events": measured.stream_events.tokens,
        "prompt_tokens": tokens.input if counted else None,
        "cached_tokens": tokens.cached,
        "output_tokens": tokens.output if counted else None,
        "reasoning_tokens": tokens.reasoning,
        "finish": measured.finish_reason,
        "done": replay.done,
        "comments": measured.stream_events.comments,
        "bad_frames": measured.stream_events.bad,
        "answer_tps": tenth(speed.answer_tps),
        "output_tps": tenth(speed.output_tps),
    }


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_a_vendors_stream_reads_as_it_should(name: str) -> None:
    expect = EXPECT[name]["expect"]
    measured, replay = play(name)
    got = seen(measured, replay)
    assert got == {key: expect[key] for key in got}
    assert measured.speed.quality in expect["quality"]
    assert tenth(measured.timing.first_event_ms) == line_ms(name, expect["first_event_line"])
    assert tenth(measured.timing.last_token_ms) == line_ms(name, expect["last_token_line"])


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_an_error_inside_a_vendors_stream_is_found(name: str) -> None:
    expected = EXPECT[name]["expect"]["error"]
    _, replay = play(name)
    if name.startswith("deepseek-insufficient"):
        # An ordinary end whose finish reason is the failure: no error object on the wire.
        assert replay.error == WireError("overloaded", wire_code="insufficient_system_resource")
    elif expected is None:
        assert replay.error is None
    else:
        assert replay.error is not None
        assert replay.error.wire_code == expected["code"]


def test_every_stream_of_the_folder_is_tried() -> None:
    assert {path.name for path in FIXTURES.glob("*.sse")} == set(EXPECT)


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_reads_split_anywhere_leave_the_counts_as_they_are(name: str) -> None:
    whole, _ = play(name)
    replay, framer = Replay(), Framer()
    data = (FIXTURES / name).read_bytes()
    for start in range(0, len(data), 7):
        replay.take(framer.feed(data[start : start + 7]), start / 1000)
    replay.take(framer.flush(), len(data) / 1000)
    split = replay.result(len(data) / 1000)
    assert split.chars == whole.chars
    assert split.tokens == whole.tokens
    assert split.stream_events == whole.stream_events
    assert split.finish_reason == whole.finish_reason
