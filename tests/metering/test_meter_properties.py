"""Properties of the meter over any stream: it never fails, and how a stream is cut into reads changes no count."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.reading import Reading, Usage
from gateway.core.record import Measurement
from gateway.metering.meter import Meter

COUNTS = st.none() | st.integers(0, 10_000)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, st.none() | st.integers(1, 9))
READINGS = st.builds(
    Reading,
    content=st.integers(0, 50),
    reasoning=st.integers(0, 50),
    tool=st.integers(0, 50),
    repeat=st.sampled_from([0, 0, 0, 7]),
    usage=st.none() | USAGES,
    finish=st.sampled_from([None, None, "stop"]),
    terminal=st.booleans(),
    bad=st.booleans(),
    choices=st.integers(1, 2),
    tool_calls_whole=st.integers(0, 1),
    summarised=st.booleans(),
    server_clock=st.none() | st.dictionaries(st.sampled_from(["itl_ms", "completion_ms"]), st.floats(0, 1e6)),
)
STREAMS = st.lists(st.tuples(READINGS, st.floats(0, 2)), max_size=30)
OUTCOMES = st.sampled_from(["ok", "error", "truncated", "cancelled"])


def measured(stream: list[tuple[Reading, float]], outcome: str, *, together: bool = False) -> Measurement:
    meter = Meter(0.0)
    at = 0.0
    for reading, step in stream:
        at += 0.0 if together else step
        meter.blocked(step / 100)
        meter.observe(Reading(**{name: getattr(reading, name) for name in Reading.__slots__}), at)
    return meter.finish(outcome, at)


@given(STREAMS, OUTCOMES)
def test_any_stream_is_measured(stream: list[tuple[Reading, float]], outcome: str) -> None:
    result = measured(stream, outcome)
    speed, timing = result.speed, result.timing
    assert speed.quality
    if speed.output_tps is not None:
        assert speed.quality == "ok" or speed.source == "server"
        assert speed.output_tps >= 0
        assert speed.weight is not None
    if outcome != "ok":
        assert (speed.output_tps, speed.answer_tps) == (None, None)
    if timing.ttft_ms is not None and timing.ttfa_ms is not None:
        assert timing.ttfa_ms >= timing.ttft_ms
    assert all(gap >= 0 for gap in result.gaps_s)


@given(STREAMS, OUTCOMES)
def test_how_a_stream_is_cut_into_reads_changes_no_count(stream: list[tuple[Reading, float]], outcome: str) -> None:
    apart, together = measured(stream, outcome), measured(stream, outcome, together=True)
    assert apart.tokens == together.tokens
    assert apart.chars == together.chars
    assert apart.stream_events == together.stream_events
    assert (apart.finish_reason, apart.terminated) == (together.finish_reason, together.terminated)
    assert together.speed.output_tps is None or together.speed.source == "server"
