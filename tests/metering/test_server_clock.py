"""Our clock beside the provider's own: the rate it states, the difference, the mark of a disagreement."""

import orjson
import pytest

from gateway.core.reading import Reading, Usage
from gateway.core.record import Measurement
from gateway.metering.meter import Meter
from gateway.metering.server_clock import server_rate
from gateway.providers.dialects import READERS

RATE = 100.0


def measured(clock: dict[str, float], *, ttft_s: float = 0.5) -> Measurement:
    """Forty-one tokens, one a chunk, at 100 tok/s by our clock."""
    meter = Meter(0.0)
    at = 0.0
    for index in range(41):
        at = ttft_s + index / RATE
        meter.observe(Reading(content=4), at)
    meter.observe(Reading(finish="stop", usage=Usage(input=10, output=41), server_clock=clock), at)
    return meter.finish("ok", at)


@pytest.mark.parametrize(
    ("clock", "rate"),
    [
        ({"itl_ms": 10.0, "completion_ms": 900.0}, 100.0),
        ({"tokens_per_s": 80.0, "completion_ms": 900.0}, 80.0),
        ({"completion_ms": 500.0}, 82.0),
        ({"total_ms": 500.0}, None),
        ({}, None),
    ],
)
def test_the_best_clock_that_was_sent_states_the_rate(clock: dict[str, float], rate: float | None) -> None:
    assert server_rate(clock, 41) == rate


def test_the_difference_of_the_rates_stands_beside_the_clock() -> None:
    found = measured({"itl_ms": 9.5, "queue_ms": 100.0, "prompt_ms": 380.0})
    assert found.server_clock == {
        "itl_ms": 9.5,
        "queue_ms": 100.0,
        "prompt_ms": 380.0,
        "decode_ratio": pytest.approx(0.95),
        "ttft_difference_ms": pytest.approx(20.0),
    }
    assert found.speed.marks == ()
    assert found.speed.output_tps == pytest.approx(RATE)


def test_its_own_time_to_first_token_goes_before_queue_and_prefill() -> None:
    clock = measured({"ttft_ms": 450.0, "queue_ms": 1.0, "prompt_ms": 2.0}).server_clock
    assert clock is not None
    assert clock["ttft_difference_ms"] == pytest.approx(50.0)
    assert "decode_ratio" not in clock


@pytest.mark.parametrize(("itl_ms", "marked"), [(12.4, False), (12.6, True), (7.6, False), (7.4, True)])
def test_clocks_that_differ_by_over_a_quarter_mark_the_sample(itl_ms: float, marked: bool) -> None:
    speed = measured({"itl_ms": itl_ms}).speed
    assert ("clock" in speed.marks) is marked
    # What the user received is what ours says.
    assert (speed.quality, speed.source) == ("ok", "client")


def test_a_rate_that_is_the_servers_own_is_not_held_against_it() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(content=400), 0.5)
    meter.observe(Reading(content=4), 0.6)
    meter.observe(Reading(finish="stop", usage=Usage(input=1, output=101), server_clock={"completion_ms": 50.0}), 0.6)
    found = meter.finish("ok", 0.6)
    assert (found.speed.source, found.speed.output_tps) == ("server", pytest.approx(2020))
    assert found.server_clock == {"completion_ms": 50.0}


def test_a_stream_without_a_server_clock_has_none() -> None:
    meter = Meter(0.0)
    meter.observe(Reading(content=4), 0.5)
    assert meter.finish("ok", 0.5).server_clock is None


def test_the_queue_of_vllm_is_a_part_of_its_first_token() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    metrics = {"time_to_first_token_ms": 80.0, "queue_time_ms": 40.0, "mean_itl_ms": 5.0}
    payload = orjson.dumps({"choices": [], "usage": usage, "metrics": metrics})
    clock = READERS["openai"].read_event(None, payload).server_clock
    assert clock == {"ttft_ms": 120.0, "queue_ms": 40.0, "itl_ms": 5.0}
