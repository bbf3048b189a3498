"""Streams as vendors send them, through framer, dialect and meter: every reading must come out exactly."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.reading import WireError
from gateway.core.record import Measurement
from gateway.metering.rates import answer_tokens
from tests.metering.replaying import EXPECT, FIXTURES, Replay, dialect_of, lines_of, play, play_split

# An ordinary end whose reason is the failure: there is no error object on the wire.
_FAILED_ENDS = {
    "deepseek-insufficient-resource.sse": WireError("overloaded", wire_code="insufficient_system_resource"),
    "gemini-native-prompt-blocked.sse": WireError(
        "content_filter", "the prompt was blocked", wire_code="PROHIBITED_CONTENT"
    ),
}


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
        "prompt_tokens": tokens.input,
        "cached_tokens": tokens.cached,
        "output_tokens": tokens.output if counted else None,
        "reasoning_tokens": tokens.reasoning,
        "finish": measured.finish_reason,
        "done": replay.ended,
        "comments": measured.stream_events.comments - replay.pings,
        "pings": replay.pings,
        "bad_frames": measured.stream_events.bad,
        "answer_tps": speed.answer_tps,
        "output_tps": speed.output_tps,
    }


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_a_vendors_stream_reads_as_it_should(name: str) -> None:
    expect = EXPECT[name]["expect"]
    measured, replay = play(name)
    got = seen(measured, replay)
    rates = {key: got.pop(key) for key in ("answer_tps", "output_tps")}
    assert got == {key: expect[key] for key in got}
    # A rate of exactly 68.75 is written down as 68.8 and computed as 68.7499….
    assert rates == {key: pytest.approx(expect[key], abs=0.0501) if expect[key] else None for key in rates}
    assert measured.speed.quality in expect["quality"]
    assert tenth(measured.timing.first_event_ms) == line_ms(name, expect["first_event_line"])
    assert tenth(measured.timing.last_token_ms) == line_ms(name, expect["last_token_line"])


def answer_tokens_of(measured: Measurement) -> int | None:
    """Output less reasoning, where the split is known."""
    tokens = measured.tokens
    if tokens.source != "usage" or tokens.output is None:
        return None
    if tokens.reasoning is None and measured.chars.reasoning:
        return None
    return max(0, tokens.output - (tokens.reasoning or 0))


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_answer_tokens_are_those_that_are_no_reasoning(name: str) -> None:
    measured, replay = play(name)
    if replay.error is None:
        assert answer_tokens_of(measured) == EXPECT[name]["expect"]["answer_tokens"]
    assert answer_tokens(replay.meter._facts("ok")) in (None, answer_tokens_of(measured))


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_each_thing_is_read_from_its_own_line(name: str) -> None:
    expect = EXPECT[name]["expect"]
    # One line at a time, each as a read of its own: the line in which an event was complete is the one that bore it.
    lines = lines_of(name)
    replay = Replay(dialect_of(name))
    starts: list[int] = []
    for number, line in enumerate(lines, start=1):
        starts.append(replay.fed)
        replay.feed(line, float(number))
    replay.flush(float(len(lines)))
    got = {what: line_that_bore(lines, starts, at) for what, at in replay.seen.items()}
    wanted = {
        "event": expect["first_event_line"],
        "token": expect["first_token_line"],
        "answer": expect["first_answer_line"],
        "last_token": expect["last_token_line"],
        "usage": expect["usage_line"],
        "error": expect["error"]["line"] if expect["error"] else None,
    }
    for what, line in wanted.items():
        if line is not None:
            assert closes(lines, line, got[what]), (what, got[what], line)
        elif name not in _FAILED_ENDS or what != "error":
            assert what not in got or what == "answer", what


def line_that_bore(lines: list[bytes], starts: list[int], at: int) -> int:
    """The number of the line that was fed when the event came out."""
    return next((number for number, start in enumerate(starts, start=1) if start == at), len(lines))


def closes(lines: list[bytes], line: int, got: int) -> bool:
    """An event comes out with the blank line after its last one (a bare JSON error after all of its lines)."""
    if got == line or lines[line - 1].startswith(b"{"):
        return got >= line
    return all(part.strip() and not part.startswith(b"event:") for part in lines[line - 1 : got - 1])


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_an_error_inside_a_vendors_stream_is_found(name: str) -> None:
    expected = EXPECT[name]["expect"]["error"]
    _, replay = play(name)
    if name in _FAILED_ENDS:
        assert replay.error == _FAILED_ENDS[name]
    elif expected is None:
        assert replay.error is None
    else:
        assert replay.error is not None
        assert replay.error.wire_code == expected["code"]


def test_every_stream_of_the_folder_is_tried() -> None:
    assert {path.name for path in FIXTURES.glob("*-*.*")} == set(EXPECT)
    assert {dialect_of(name) for name in EXPECT} == {
        "openai", "responses", "anthropic", "gemini", "bedrock", "cohere", "ollama",
    }  # fmt: skip


def same_counts(one: Measurement, other: Measurement) -> None:
    assert one.chars == other.chars
    assert one.tokens == other.tokens
    assert one.stream_events == other.stream_events
    assert (one.finish_reason, one.served_model, one.served_tier) == (
        other.finish_reason, other.served_model, other.served_tier,
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_a_stream_byte_by_byte_reads_the_same(name: str) -> None:
    whole, played = play(name)
    split, replay = play_split(name, list(range(100_000)))
    same_counts(split, whole)
    assert (replay.error, replay.ended, replay.pings) == (played.error, played.ended, played.pings)


@pytest.mark.parametrize("name", sorted(EXPECT))
@given(cuts=st.lists(st.integers(0, 100_000), max_size=12))
@settings(deadline=None, max_examples=25)
def test_a_stream_split_anywhere_reads_the_same(name: str, cuts: list[int]) -> None:
    whole, played = play(name)
    split, replay = play_split(name, cuts)
    same_counts(split, whole)
    assert (replay.error, replay.ended, replay.pings) == (played.error, played.ended, played.pings)
