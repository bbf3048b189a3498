"""The comparison with aiperf: requests joined by its ids, medians held against each other."""

from typing import Any

import pytest

from benchmarks.aiperf import Pair, compared, paired
from benchmarks.native_build import BenchmarkError


def export(request_id: str, ttft_ms: float, itl_ms: float, phase: str = "profiling") -> dict[str, Any]:
    return {
        "metadata": {"x_request_id": request_id, "benchmark_phase": phase},
        "metrics": {"time_to_first_token": {"value": ttft_ms}, "inter_token_latency": {"value": itl_ms}},
    }


def record(ttft_ms: float, tps: float, quality: str = "ok") -> dict[str, Any]:
    return {"id": "gen-1", "client": {"ttft_ms": ttft_ms}, "speed": {"output_tps": tps, "quality": quality}}


def test_requests_are_joined_by_the_id_that_the_client_gave() -> None:
    exported = [export("a", 505, 10), export("b", 600, 10, "warmup"), export("unknown", 1, 1)]
    pairs = paired(exported, {"a": record(500, 100), "b": record(600, 100)})
    assert pairs == [Pair(ttft_ms=500, aiperf_ttft_ms=505, tps=100, aiperf_tps=pytest.approx(100))]


@pytest.mark.parametrize(("ours", "theirs", "holds"), [(100, 101, True), (100, 103, False), (103, 100, False)])
def test_two_percent_are_the_limit(ours: float, theirs: float, holds: bool) -> None:
    ttft, speed = compared([Pair(500, 500, ours, theirs)])
    assert ttft.holds
    assert speed.holds is holds


def test_nothing_joined_or_an_unsound_sample_is_no_agreement() -> None:
    with pytest.raises(BenchmarkError, match="no request"):
        paired([export("a", 1, 1)], {})
    with pytest.raises(BenchmarkError, match="short"):
        paired([export("a", 1, 1)], {"a": record(1, 1, "short")})
