"""What `make truth` passes and what it fails."""

from typing import Any

import pytest

from benchmarks.native_build import BenchmarkError
from benchmarks.truth_check import (
    Pair,
    counters,
    exact,
    histogram,
    histogram_agrees,
    paired,
    rate_errors,
    total,
    ttft_errors,
    worst_quantile,
)

TRUTH: dict[str, Any] = {
    "prompt_tokens": 7,
    "request_read": 100.0,
    "first_token": 100.2,
    "last_token": 101.2,
    "tokens": 108,
}


def _record(ttft_ms: float = 200.3, tps: float | None = 99.0, prompt: int = 7) -> dict[str, Any]:
    return {
        "tokens": {"input": prompt},
        "timing": {"ttft_ms": ttft_ms},
        "speed": {"quality": "ok", "output_tps": tps},
    }


def _pair(ttft_ms: float, rate: float | None) -> Pair:
    return Pair("ok", ttft_ms, 200.0, rate, 100.0)


def test_a_record_is_held_against_the_writes_of_its_own_stream() -> None:
    pair = paired(_record(), TRUTH, "output_tps", first_tokens=8)
    assert pair.true_ttft_ms == pytest.approx(200.0)
    assert pair.true_rate == pytest.approx(100.0)
    assert pair.ttft_error_ms == pytest.approx(0.3)
    assert pair.rate_error == pytest.approx(0.01)


def test_a_record_of_another_stream_is_no_comparison() -> None:
    with pytest.raises(BenchmarkError, match="another"):
        paired(_record(prompt=8), TRUTH, "output_tps", first_tokens=8)


@pytest.mark.parametrize(
    ("ttfts", "holds"),
    [([200.9] * 20, True), ([201.1] * 20, False), ([200.1] * 18 + [220.0] * 2, False), ([200.1] * 19 + [220.0], True)],
)
def test_first_tokens_hold_by_their_median_and_their_tail(ttfts: list[float], holds: bool) -> None:
    assert ttft_errors([_pair(ttft, 100.0) for ttft in ttfts]).holds == holds


@pytest.mark.parametrize(
    ("rates", "holds"),
    [
        ([100.9] * 20, True),
        ([98.9] * 20, False),
        ([100.0] * 18 + [94.0] * 2, False),
        ([100.0] * 18 + [None] * 2, False),
    ],
)
def test_a_speed_that_is_missing_is_as_bad_as_a_wrong_one(rates: list[float | None], holds: bool) -> None:
    assert rate_errors([_pair(200.0, rate) for rate in rates]).holds == holds


def test_the_exact_quantile_is_one_of_the_values() -> None:
    assert exact([3.0, 1.0, 2.0], 0.5) == 2.0
    assert exact([3.0, 1.0, 2.0], 0.99) == 3.0
    assert exact([3.0, 1.0, 2.0], 0.1) == 1.0


BUCKETS = [(1.0, 2.0), (2.0, 3.0), (float("inf"), 4.0)]


@pytest.mark.parametrize(
    ("values", "agrees"),
    [
        ([0.5, 0.6, 1.5, 7.0], True),
        ([0.5, 1.5, 1.6, 7.0], False),
        ([0.5, 0.6, 1.5], False),
        ([0.5, 1.001, 1.5, 7.0], True),
    ],
)
def test_a_histogram_agrees_where_every_quantile_lies_in_its_bucket(values: list[float], agrees: bool) -> None:
    assert histogram_agrees(BUCKETS, values, 0.01) == agrees


def test_quantiles_are_as_far_off_as_the_worst_of_them_beyond_rounding() -> None:
    told = {"p10": 10.0, "p50": 20.0, "p75": 30.0, "p90": 40.0, "p99": 50.0}
    values = [10.0] * 10 + [20.0] * 40 + [30.0] * 25 + [40.0] * 15 + [50.0] * 10
    assert worst_quantile(told, values) == 0.0
    assert worst_quantile({**told, "p90": 42.0}, values) == pytest.approx(1.9 / 40)
    assert worst_quantile({**told, "p90": 40.1}, values) == pytest.approx(0.0, abs=1e-12)
    assert worst_quantile({**told, "p10": None}, values) == float("inf")


EXPOSITION = """\
# TYPE h_seconds histogram
h_seconds_bucket{deployment="d",prompt_size="2k",le="1.0"} 1
h_seconds_bucket{deployment="d",prompt_size="2k",le="+Inf"} 2
h_seconds_bucket{deployment="d",prompt_size="8k",le="1.0"} 3
h_seconds_bucket{deployment="d",prompt_size="8k",le="+Inf"} 3
h_seconds_bucket{deployment="other",prompt_size="8k",le="1.0"} 9
h_seconds_bucket{deployment="other",prompt_size="8k",le="+Inf"} 9
# TYPE c_total counter
c_total{deployment="d",quality="ok"} 4
c_total{deployment="other",quality="ok"} 5
"""


def test_only_the_series_of_the_deployment_are_taken_all_sizes_together() -> None:
    buckets = histogram(EXPOSITION, "h_seconds", "d")
    assert buckets == [(1.0, 4.0), (float("inf"), 5.0)]
    assert total(buckets) == 5
    assert total(histogram(EXPOSITION, "h_seconds", "nobody")) == 0
    assert counters(EXPOSITION, "c_total", "quality", "d") == {"ok": 4.0}
