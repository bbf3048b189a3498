"""The quality words: each rule alone, their order when several apply, and which rates stand under which word."""

from dataclasses import replace
from itertools import pairwise

import pytest

from gateway.core.reading import Reading, Usage, WireError
from gateway.core.record import Speed
from gateway.metering.meter import Meter
from gateway.metering.quality import Facts, Span, judge, weight

EVEN = Span(window_s=1.0, reads=40, chars=400, first_chars=10, largest_read=12)
GOOD = Facts(outcome="ok", all=EVEN, answer=EVEN, events=40, output=100, reasoning=0, gaps=39)

# In the order of precedence: what has to change for the rule to hold, whatever else holds too.
RULES: list[tuple[str, dict[str, object]]] = [
    ("error", {"outcome": "error"}),
    ("cancelled", {"outcome": "cancelled"}),
    ("truncated", {"outcome": "truncated"}),
    ("corrupt", {"corrupt": True}),
    ("estimate", {"output": None}),
    ("hidden_reasoning", {"reasoning": 60}),
    ("whole_tool", {"whole_tool": True, "all": replace(EVEN, reads=2)}),
    ("burst", {"all": replace(EVEN, largest_read=320)}),
    ("client_blocked", {"blocked_s": 0.11}),
    ("short", {"events": 2}),
]


def test_a_good_sample_is_ok() -> None:
    assert judge(GOOD) == "ok"


@pytest.mark.parametrize(("word", "change"), RULES)
def test_each_rule_alone_gives_its_word(word: str, change: dict[str, object]) -> None:
    assert judge(replace(GOOD, **change)) == word  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "second"), list(pairwise(RULES)))
def test_of_two_rules_the_earlier_one_speaks(
    first: tuple[str, dict[str, object]], second: tuple[str, dict[str, object]]
) -> None:
    both = {**second[1], **first[1]}
    assert judge(replace(GOOD, **both)) == first[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"events": 2}, "short"),
        ({"events": 3}, "ok"),
        ({"output": 7}, "short"),
        ({"output": 8}, "ok"),
        ({"all": replace(EVEN, window_s=0.0199)}, "short"),
        ({"all": replace(EVEN, window_s=0.282 - 0.262)}, "ok"),
        ({"choices": 2}, "short"),
        ({"predicted": True}, "short"),
        ({"all": replace(EVEN, largest_read=319)}, "ok"),
        ({"quick_gaps": 20, "longest_gap_s": 0.251}, "burst"),
        ({"quick_gaps": 19, "longest_gap_s": 0.251}, "ok"),
        ({"quick_gaps": 20, "longest_gap_s": 0.249}, "ok"),
        ({"quick_gaps": 20, "longest_gap_s": 0.251, "events": 15}, "ok"),
        ({"output": 100_000}, "burst"),
        ({"blocked_s": 0.1}, "ok"),
        ({"whole_tool": True}, "ok"),
        ({"whole_tool": True, "all": replace(EVEN, reads=2, largest_read=400)}, "whole_tool"),
        ({"reasoning": None}, "ok"),
        ({"reasoning": 30, "reasoning_chars": 29}, "hidden_reasoning"),
        ({"reasoning": 30, "reasoning_chars": 30}, "ok"),
        ({"reasoning": 30, "reasoning_chars": 90, "summarised": True}, "hidden_reasoning"),
    ],
)
def test_the_bounds_of_each_rule(change: dict[str, object], word: str) -> None:
    assert judge(replace(GOOD, **change)) == word  # type: ignore[arg-type]


@pytest.mark.parametrize(("window_s", "expected"), [(0.05, 0.26), (0.5, 0.97), (0.048, 0.24), (0.0, 0.0)])
def test_the_weight_grows_with_the_window(window_s: float, expected: float) -> None:
    assert weight(window_s) == pytest.approx(expected, abs=0.005)


def speed_of(readings: list[tuple[Reading, float]], outcome: str = "ok") -> Speed:
    meter = Meter(0.0)
    for reading, at in readings:
        meter.observe(reading, at)
    return meter.finish(outcome, readings[-1][1]).speed


def answer(events: int, start: float = 1.0, step: float = 0.02) -> list[tuple[Reading, float]]:
    return [(Reading(content=4), start + step * index) for index in range(events)]


def end(at: float, **fields: object) -> tuple[Reading, float]:
    return Reading(finish="stop", **fields), at  # type: ignore[arg-type]


def test_hidden_reasoning_leaves_the_answers_rate() -> None:
    speed = speed_of([*answer(11), end(1.2, usage=Usage(output=911, reasoning=900))])
    assert speed.quality == "hidden_reasoning"
    assert speed.output_tps is None
    assert speed.answer_tps == pytest.approx(50)


def test_buffered_reasoning_leaves_the_rate_of_an_answer_that_streams() -> None:
    flush = [(Reading(reasoning=4000), 1.0)]
    speed = speed_of([*flush, *answer(11, 1.1), end(1.3, usage=Usage(output=1011, reasoning=1000))])
    assert speed.quality == "burst"
    assert speed.output_tps is None
    assert speed.answer_tps == pytest.approx(50)


def test_an_answer_flushed_at_once_after_reasoning_has_no_rate_of_its_own() -> None:
    thought = [(Reading(reasoning=4), 1.0 + 0.01 * index) for index in range(50)]
    flush = [(Reading(content=100), 2.0), (Reading(content=4), 2.05)]
    speed = speed_of([*thought, *flush, end(2.1, usage=Usage(output=76, reasoning=50))])
    assert speed.quality == "ok"
    assert speed.output_tps is not None
    assert speed.answer_tps is None


@pytest.mark.parametrize(
    ("clock", "rate"),
    [
        ({"completion_ms": 50.0}, 2000.0),
        ({"itl_ms": 4.0, "completion_ms": 50.0}, 250.0),
        ({"tokens_per_s": 1234.0, "completion_ms": 50.0}, 1234.0),
        ({"prompt_ms": 50.0}, None),
        ({"completion_ms": 0.0}, None),
        ({"completion_ms": 0.001}, None),
    ],
)
def test_a_burst_takes_its_rate_from_the_servers_clock(clock: dict[str, float], rate: float | None) -> None:
    pieces = [(Reading(content=900), 1.0), (Reading(content=50), 1.01), (Reading(content=50), 1.02)]
    speed = speed_of([*pieces, end(1.1, usage=Usage(output=100), server_clock=clock)])
    assert speed.quality == "burst"
    assert speed.output_tps == (None if rate is None else pytest.approx(rate))
    assert speed.source == ("server" if rate else None)
    assert (speed.weight is None) == (rate is None)


def test_a_good_sample_keeps_the_clients_clock() -> None:
    speed = speed_of([*answer(11), end(1.2, usage=Usage(output=11), server_clock={"completion_ms": 1.0})])
    assert speed.source == "client"
    assert speed.output_tps == pytest.approx(50)


def test_a_tool_call_in_one_piece_has_no_rate() -> None:
    call = Reading(tool=40, tool_calls_whole=1)
    speed = speed_of([(Reading(content=20), 1.0), (call, 2.0), end(2.0, usage=Usage(output=30))])
    assert speed.quality == "whole_tool"
    assert (speed.output_tps, speed.answer_tps) == (None, None)


def test_a_tool_call_after_streamed_text_leaves_the_rate() -> None:
    call = Reading(tool=16, tool_calls_whole=1)
    speed = speed_of([*answer(10), (call, 1.4), end(1.4, usage=Usage(output=14))])
    assert speed.quality == "ok"
    assert speed.output_tps == pytest.approx(14 * (1 - 4 / 56) / 0.4)


@pytest.mark.parametrize(("position", "word"), [(0, "ok"), (5, "corrupt"), (10, "corrupt"), (11, "ok")])
def test_only_a_bad_frame_inside_the_window_spoils_the_sample(position: int, word: str) -> None:
    readings = [*answer(10), end(1.2, usage=Usage(output=10))]
    readings.insert(position, (Reading(bad=True), readings[min(position, 10)][1]))
    assert speed_of(readings).quality == word


def test_an_error_event_is_an_error_whatever_the_outcome_says() -> None:
    meter = Meter(0.0)
    replies = [*answer(10), end(1.2, usage=Usage(output=10))]
    for reading, at in replies:
        meter.observe(reading, at)
    meter.observe(Reading(error=WireError("server_error")), 1.3)
    assert meter.finish("ok", 1.3).speed.quality == "error"
