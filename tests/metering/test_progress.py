"""How far a running stream is said to be, at any moment of it, beside what is said of it when it ends there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.reading import Reading, Usage
from gateway.core.types import Progress
from gateway.metering.meter import Meter

PIECES = st.lists(st.tuples(st.integers(1, 40), st.floats(0, 0.5)), min_size=1, max_size=40)


def fed(pieces: list[tuple[int, float]], **meter: bool) -> tuple[Meter, float]:
    """A meter in the middle of a stream: characters and the time before them. And the moment of the last piece."""
    made, at = Meter(0.0, **meter), 0.3
    for chars, step in pieces:
        at += step
        made.observe(Reading(content=chars, plain=True), at)
    return made, at


def steady(meter: Meter, events: int, start: float = 0.5) -> float:
    """Four characters, one token, every ten milliseconds: 100 tok/s."""
    for index in range(events):
        meter.observe(Reading(content=4, plain=True), start + index / 100)
    return start + (events - 1) / 100


@given(PIECES, st.floats(0, 10), st.booleans(), st.sampled_from([1.0, 3.7, 8.0]))
def test_a_running_stream_never_looks_faster_than_it_was(
    pieces: list[tuple[int, float]], later: float, tools: bool, off: float
) -> None:
    meter, last = fed(pieces, tools=tools)
    progress = meter.progress(last + later)
    chars = sum(chars for chars, _ in pieces)
    meter.observe(Reading(finish="stop", usage=Usage(input=9, output=max(1, round(chars / off)))), last + later)
    final = meter.finish("ok", last + later)
    assert progress.first_token_s == pytest.approx((final.timing.ttft_ms or 0) / 1000)
    assert progress.tokens == pytest.approx(chars / 4)
    if progress.tps is not None and final.speed.output_tps is not None:
        # By no more than the estimate of the tokens is off.
        assert progress.tps <= final.speed.output_tps * progress.tokens / (final.tokens.output or 1) * 1.0001


@given(PIECES, st.floats(0, 10), st.booleans())
def test_to_ask_changes_nothing(pieces: list[tuple[int, float]], later: float, tools: bool) -> None:
    asked, last = fed(pieces, tools=tools)
    left_alone, _ = fed(pieces, tools=tools)
    assert asked.progress(last + later) == asked.progress(last + later)
    assert asked.finish("cancelled", last + later) == left_alone.finish("cancelled", last + later)


def test_before_the_first_token_there_is_a_wait_and_nothing_else() -> None:
    meter = Meter(10.0, prompt_estimate=70)
    meter.observe(Reading(), 10.2)
    assert meter.progress(12.5) == Progress(2.5, prompt_tokens=70)


def test_silence_slows_a_stream_and_says_nothing_where_a_call_may_be_held_back() -> None:
    plain, tools = Meter(0.0), Meter(0.0, tools=True)
    last = steady(plain, 101)
    steady(tools, 101)
    assert plain.progress(last).tps == pytest.approx(100)
    assert plain.progress(last + 1).tps == pytest.approx(50)
    assert tools.progress(last + 1).tps == pytest.approx(100)


@pytest.mark.parametrize(
    "reading",
    [
        Reading(reasoning=4, summarised=True),
        Reading(tool=40, tool_calls_whole=1),
        Reading(content=4, choices=2),
        Reading(finish="stop"),
    ],
    ids=["a summary of thinking", "a whole call", "two choices", "over"],
)
def test_what_makes_silence_or_counts_meaningless_lets_it_rest(reading: Reading) -> None:
    meter = Meter(0.0)
    last = steady(meter, 20)
    assert not meter.progress(last + 1).resting
    meter.observe(reading, last)
    assert meter.progress(last + 1).resting


def test_a_repetition_of_the_whole_message_adds_nothing() -> None:
    meter = Meter(0.0)
    last = steady(meter, 20)
    meter.observe(Reading(repeat=80), last)
    assert meter.progress(last).tokens == 20


def test_while_the_client_takes_nothing_time_stands_still() -> None:
    meter = Meter(0.0)
    last = steady(meter, 101)
    meter.waits(last)
    assert meter.progress(last + 60).tps == pytest.approx(100)
    assert meter.progress(last + 60).elapsed_s == pytest.approx(1.5)


def test_a_client_that_kept_us_waiting_for_a_tenth_of_the_time_leaves_no_rate() -> None:
    meter = Meter(0.0)
    last = steady(meter, 101)
    meter.waits(last)
    meter.blocked(0.5)
    assert meter.progress(last + 0.5).tps is None
    last = steady(meter, 201, last + 0.5)
    assert meter.progress(last).tps is None
    last = steady(meter, 301, last)
    assert meter.progress(last).tps == pytest.approx(100, rel=0.1)


def test_the_second_of_two_answers_is_looked_at_alone() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(restart=True), 0.2)
    steady(meter, 101)
    meter.observe(Reading(restart=True), 2.0)
    assert meter.progress(2.5).first_token_s is None
    last = steady(meter, 51, 3.0)
    assert meter.progress(last).tps == pytest.approx(100)
    assert meter.progress(last).tokens == 51
