"""The meter on scripted streams: clocks, gaps, usage, estimates, whole answers."""

import pytest

from gateway.core.reading import Reading, Usage
from gateway.core.record import Measurement
from gateway.metering.meter import KEPT_GAPS, Meter

DONE = Reading(finish="stop")


def streamed(
    pieces: list[tuple[int, float]], usage: Usage | None = None, *, outcome: str = "ok", meter: Meter | None = None
) -> Measurement:
    """Pieces of content: characters and moment; then a finish reason with the usage."""
    meter = meter or Meter(0.0)
    for chars, at in pieces:
        meter.observe(Reading(content=chars), at)
    end = pieces[-1][1] if pieces else 0.0
    if outcome == "ok":
        meter.observe(Reading(finish="stop", usage=usage), end)
    return meter.finish(outcome, end)


def steady(events: int, step: float = 0.01, chars: int = 4) -> list[tuple[int, float]]:
    return [(chars, 0.5 + step * index) for index in range(events)]


def test_first_token_is_the_first_event_that_bears_one() -> None:
    meter = Meter(10.0)
    meter.headers(10.1)
    meter.observe(Reading(), 10.2)
    meter.observe(Reading(reasoning=3), 10.5)
    meter.observe(Reading(content=3), 10.9)
    timing = meter.finish("cancelled", 11.0).timing
    assert timing.headers_ms == pytest.approx(100)
    assert timing.first_event_ms == pytest.approx(200)
    assert timing.ttft_ms == pytest.approx(500)
    assert timing.ttfa_ms == pytest.approx(900)
    assert timing.last_token_ms == pytest.approx(900)
    assert timing.duration_ms == pytest.approx(1000)


def test_a_stream_without_a_token_has_no_first_token() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(), 0.2)
    measured = meter.finish("error", 1.0)
    assert measured.timing.ttft_ms is None
    assert measured.timing.last_token_ms is None
    assert measured.timing.max_gap_ms is None
    assert measured.tokens.source is None


def test_the_end_is_the_terminal_marker_where_there_is_one() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(content=1), 0.1)
    meter.observe(Reading(terminal=True), 0.2)
    assert meter.terminated
    assert meter.finish("ok", 5.0).timing.duration_ms == pytest.approx(200)


def test_a_finish_reason_alone_terminates() -> None:
    assert streamed(steady(3)).terminated
    assert not streamed(steady(3), outcome="truncated").terminated


def test_events_of_one_read_are_one_arrival() -> None:
    measured = streamed([(4, 0.1), (4, 0.1), (4, 0.2), (4, 0.3)], Usage(output=40))
    assert measured.stream_events.tokens == 4
    assert len(measured.gaps_s) == 2
    # 16 characters, 8 of them in the first read: half of the tokens came in the 200 ms after it.
    assert measured.speed.output_tps == pytest.approx(100)
    assert measured.speed.chars_per_s == pytest.approx(40)
    assert measured.speed.tpot_ms == pytest.approx(10)
    assert measured.speed.source == "client"


def test_gaps_and_stalls_lie_between_token_bearing_reads() -> None:
    meter = Meter(0.0)
    for at in (0.1, 0.2, 1.3, 1.4):
        meter.observe(Reading(content=4), at)
        meter.observe(Reading(), at + 0.05)
    measured = meter.finish("cancelled", 2.0)
    assert measured.timing.max_gap_ms == pytest.approx(1100)
    assert measured.timing.stalls == 1
    assert measured.gaps_s == pytest.approx((0.1, 1.1, 0.1), rel=1e-6)


def test_time_blocked_on_the_client_is_taken_out_of_the_gap() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(content=4), 0.1)
    meter.blocked(1.5)
    meter.observe(Reading(content=4), 2.0)
    measured = meter.finish("cancelled", 2.0)
    assert measured.timing.max_gap_ms == pytest.approx(400)
    assert measured.timing.stalls == 0
    assert measured.timing.client_blocked_ms == pytest.approx(1500)


def test_only_blocking_inside_the_window_spoils_the_sample() -> None:
    early = Meter(0.0)
    early.blocked(5.0)
    assert streamed(steady(20), Usage(output=20), meter=early).speed.quality == "ok"
    late = Meter(0.0)
    for chars, at in steady(20):
        late.observe(Reading(content=chars), at)
        late.blocked(0.002)
    late.observe(Reading(finish="stop", usage=Usage(output=20)), 0.7)
    measured = late.finish("ok", 0.7)
    assert measured.speed.quality == "client_blocked"
    assert measured.speed.output_tps is None


def test_kept_gaps_are_bounded_and_the_longest_is_seen_all_the_same() -> None:
    pieces = steady(KEPT_GAPS + 50)
    pieces.append((4, pieces[-1][1] + 3.0))
    measured = streamed(pieces)
    assert len(measured.gaps_s) == KEPT_GAPS
    assert measured.timing.max_gap_ms == pytest.approx(3000)


@pytest.mark.parametrize("cached", [None, 3])
def test_the_last_usage_wins_and_nothing_is_summed(cached: int | None) -> None:
    meter = Meter(0.0)
    for index in range(1, 11):
        meter.observe(Reading(content=4, usage=Usage(input=7, cached=cached, output=index)), index / 10)
    tokens = meter.finish("cancelled", 2.0).tokens
    assert (tokens.input, tokens.cached, tokens.output, tokens.source) == (7, cached, 10, "usage")


def test_a_running_count_that_tokens_followed_is_not_the_final_usage() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(content=4, usage=Usage(input=7, cached=3, output=1)), 0.1)
    meter.observe(Reading(content=36), 0.2)
    tokens = meter.finish("truncated", 0.2).tokens
    assert (tokens.input, tokens.cached) == (7, 3)
    assert (tokens.output, tokens.source) == (10, "estimate")


def test_without_usage_tokens_are_estimated_and_marked_so() -> None:
    measured = streamed(steady(20), meter=Meter(0.0, chars_per_token=2.0, prompt_estimate=55))
    assert (measured.tokens.input, measured.tokens.output) == (55, 40)
    assert measured.tokens.source == "estimate"
    assert measured.speed.quality == "estimate"
    assert measured.speed.output_tps is None
    assert measured.speed.estimated_tps == pytest.approx(200)


def test_a_cancelled_stream_keeps_its_estimated_rate_and_states_no_other() -> None:
    speed = streamed(steady(20), outcome="cancelled").speed
    assert speed.quality == "cancelled"
    assert speed.estimated_tps == pytest.approx(100)
    assert (speed.output_tps, speed.answer_tps, speed.chars_per_s) == (None, None, None)


@pytest.mark.parametrize("whole", [False, True])
def test_a_zero_beside_text_is_no_count_of_it(whole: bool) -> None:
    meter = Meter(0.0, chars_per_token=4.0)
    if whole:
        meter.whole(Reading(content=80, finish="stop", usage=Usage(input=12, output=0)), 1.0)
        measured = meter.finish("ok", 1.0)
    else:
        measured = streamed(steady(20), Usage(input=12, output=0), meter=meter)
        assert measured.speed.quality == "estimate"
        assert measured.speed.estimated_tps == pytest.approx(100)
    assert (measured.tokens.input, measured.tokens.output, measured.tokens.source) == (12, 20, "estimate")


def test_a_zero_where_nothing_was_streamed_is_the_count() -> None:
    tokens = streamed([], Usage(input=12, output=0)).tokens
    assert (tokens.input, tokens.output, tokens.source) == (12, 0, "usage")


def test_a_zero_beside_streamed_reasoning_is_unknown() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(reasoning=4), 0.1)
    meter.observe(Reading(content=4), 0.2)
    meter.observe(Reading(content=4), 0.3)
    meter.observe(Reading(finish="stop", usage=Usage(output=12, reasoning=0)), 0.3)
    measured = meter.finish("ok", 0.3)
    assert measured.tokens.reasoning is None
    assert measured.speed.answer_tps is None
    assert measured.speed.output_tps == pytest.approx(12 * (2 / 3) / 0.2)


def test_a_zero_without_reasoning_is_zero() -> None:
    assert streamed(steady(10), Usage(output=10, reasoning=0)).tokens.reasoning == 0


def test_a_message_repeated_at_the_end_counts_only_if_nothing_was_streamed() -> None:
    after = streamed([*steady(9)], Usage(output=9))
    meter = Meter(0.0)
    meter.observe(Reading(repeat=36, finish="stop", usage=Usage(output=9)), 0.5)
    alone = meter.finish("ok", 0.5)
    assert alone.chars.content == 36
    assert alone.stream_events.tokens == 1
    meter = Meter(0.0)
    for chars, at in steady(9):
        meter.observe(Reading(content=chars), at)
    meter.observe(Reading(repeat=36, finish="stop", usage=Usage(output=9)), 0.6)
    assert meter.finish("ok", 0.6).chars == after.chars


def test_an_answer_in_one_body_has_counts_and_no_rate() -> None:
    meter = Meter(0.0)
    meter.headers(0.9)
    meter.whole(
        Reading(content=400, finish="stop", model="m", usage=Usage(input=5, output=100), tool_calls_whole=1), 1.0
    )
    measured = meter.finish("ok", 1.0)
    assert (measured.tokens.output, measured.tokens.source) == (100, "usage")
    assert measured.chars.content == 400
    assert (measured.timing.ttft_ms, measured.timing.ttfa_ms, measured.timing.last_token_ms) == (None, None, None)
    assert measured.timing.duration_ms == pytest.approx(1000)
    assert (measured.speed.output_tps, measured.speed.answer_tps, measured.speed.quality) == (None, None, None)
    assert measured.stream_events.tokens == 0
    assert measured.terminated


def test_marks_say_what_makes_a_sample_special() -> None:
    meter = Meter(0.0, marks=("cold", "retry"))
    measured = streamed(steady(10), Usage(input=10, cached=4, output=10), meter=meter)
    assert measured.speed.marks == ("cached", "cold", "retry")
    assert streamed(steady(10), Usage(input=10, cached=0, output=10)).speed.marks == ()


def test_names_are_the_first_model_and_the_last_tier() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(), 0.1)
    meter.observe(Reading(content=1, model="m-1", tier="auto"), 0.2)
    meter.observe(Reading(model="m-2", tier="priority"), 0.3)
    measured = meter.finish("cancelled", 0.3)
    assert (measured.served_model, measured.served_tier) == ("m-1", "priority")


def test_comments_and_undecodable_events_are_counted() -> None:
    meter = Meter(0.0)
    meter.comment()
    meter.observe(Reading(bad=True), 0.1)
    meter.observe(Reading(content=1), 0.2)
    events = meter.finish("cancelled", 0.3).stream_events
    assert (events.tokens, events.comments, events.bad) == (1, 1, 1)


def test_the_parts_of_the_server_clock_are_joined() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(server_clock={"prompt_ms": 5.0}), 0.1)
    meter.observe(Reading(server_clock={"prompt_ms": 6.0, "completion_ms": 7.0}), 0.2)
    assert meter.finish("ok", 0.3).server_clock == {"prompt_ms": 6.0, "completion_ms": 7.0}


def with_ids(*ids: str | None) -> Measurement:
    meter = Meter(0.0)
    meter.observe(Reading(response_id="preamble"), 0.1)
    for index, response_id in enumerate(ids):
        meter.observe(Reading(content=4, response_id=response_id), 0.5 + 0.01 * index)
    meter.observe(Reading(finish="stop", usage=Usage(output=40), response_id="usage"), 2.0)
    return meter.finish("ok", 2.0)


@pytest.mark.parametrize(
    ("ids", "spliced"),
    [
        (["a"] * 10, False),
        (["a"] * 5 + ["b"] * 5, True),
        (["a"] * 9 + ["b"], True),
        ([None] * 3 + ["a"] * 7, False),
        (["a", None] * 5, False),
        ([str(index) for index in range(10)], False),
        (["a"] * 3 + ["b"] * 3 + ["c"] * 3, True),
    ],
)
def test_tokens_of_another_response_are_a_splice_and_an_id_for_each_chunk_is_none(
    ids: list[str | None], spliced: bool
) -> None:
    measured = with_ids(*ids)
    assert measured.splice is spliced
    assert (measured.speed.quality == "corrupt") is spliced
    assert (measured.speed.output_tps is None) is spliced


def test_a_second_start_counts_the_tokens_of_the_last_answer() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(restart=True, usage=Usage(input=17)), 0.3)
    meter.observe(Reading(content=50), 0.4)
    meter.observe(Reading(restart=True, usage=Usage(input=18)), 0.7)
    meter.observe(Reading(content=10), 0.8)
    meter.observe(Reading(finish="end_turn", usage=Usage(output=5), terminal=True), 0.9)
    measured = meter.finish("ok", 0.9)
    assert measured.splice
    assert (measured.chars.content, measured.stream_events.tokens) == (10, 1)
    assert (measured.tokens.input, measured.tokens.output) == (18, 5)
    assert measured.timing.ttft_ms == pytest.approx(800)
    assert measured.speed.quality == "corrupt"


def test_a_request_that_left_late_was_not_waited_for_before() -> None:
    meter = Meter(10.0)
    meter.headers(10.9, sent=10.8)
    meter.observe(Reading(content=1), 11.0)
    timing = meter.finish("cancelled", 11.0).timing
    assert timing.headers_ms == pytest.approx(100)
    assert timing.ttft_ms == pytest.approx(200)
