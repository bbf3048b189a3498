"""The comparison with aiperf: requests joined by its ids, held against each other one by one."""

from typing import Any

import pytest

from benchmarks.aiperf import Pair, compared, paired
from benchmarks.native_build import BenchmarkError


def export(
    request_id: str, ttft_ms: float, itl_ms: float, phase: str = "profiling", tokens: int = 200
) -> dict[str, Any]:
    return {
        "metadata": {"x_request_id": request_id, "benchmark_phase": phase},
        "metrics": {
            "time_to_first_token": {"value": ttft_ms},
            "inter_token_latency": {"value": itl_ms},
            "output_sequence_length": {"value": tokens},
        },
    }


def record(ttft_ms: float, tps: float, quality: str = "ok", chunks: int = 200) -> dict[str, Any]:
    return {
        "id": "gen-1",
        "client": {"ttft_ms": ttft_ms},
        "tokens": {"output": 200},
        "stream_events": {"tokens": chunks},
        "speed": {"output_tps": tps, "quality": quality},
    }


def test_requests_are_joined_by_the_id_that_the_client_gave() -> None:
    exported = [export("a", 505, 10), export("b", 600, 10, "warmup")]
    pairs = paired(exported, {"b": record(600, 100), "a": record(500, 100)}, 1)
    assert pairs == [Pair(ttft_ms=500, aiperf_ttft_ms=505, tps=100, aiperf_tps=pytest.approx(100))]


@pytest.mark.parametrize(("ours", "theirs", "holds"), [(100, 101, True), (100, 103, False), (103, 100, False)])
def test_two_percent_are_the_limit(ours: float, theirs: float, holds: bool) -> None:
    ttft, speed = compared([Pair(500, 500, ours, theirs)])
    assert ttft.holds
    assert speed.holds is holds


def test_requests_that_differ_either_way_do_not_agree_because_their_medians_do() -> None:
    ttft, speed = compared([Pair(100, 300, 100, 100), Pair(200, 100, 100, 100), Pair(300, 200, 100, 105)])
    assert ttft.gateway == ttft.aiperf
    assert (ttft.holds, ttft.within) == (False, 0)
    assert (speed.holds, speed.within, speed.worst) == (True, 2, pytest.approx(100 / 105))


@pytest.mark.parametrize(
    ("exported", "found", "said"),
    [
        ([], record(1, 1), "0 of 1"),
        ([export("lost", 1, 1)], record(1, 1), "not among"),
        ([{**export("a", 1, 1), "error": {"code": 500}}], record(1, 1), "failed"),
        ([export("a", 1, 1)], record(1, 1, "short"), "short"),
        ([export("a", 1, 1, tokens=199)], record(1, 1), "199 by aiperf"),
        ([export("a", 1, 1)], record(1, 1, chunks=25), "25 chunks"),
    ],
)
def test_what_cannot_be_compared_is_no_agreement(
    exported: list[dict[str, Any]], found: dict[str, Any], said: str
) -> None:
    with pytest.raises(BenchmarkError, match=said):
        paired(exported, {"a": found}, 1)
