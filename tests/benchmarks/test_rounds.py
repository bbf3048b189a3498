"""Medians, paired ratios and the report of the data-plane benchmark."""

from dataclasses import replace

import pytest

from benchmarks.kernel import Machine
from benchmarks.load import Load
from benchmarks.report import Run, as_json, markdown
from benchmarks.rounds import Round, Size, added, medians, paired, spreads

ROUND = Round(
    cpu_s_per_million_chunks=50.0,
    cpu_s_per_million_chunks_in_step=25.0,
    cpu_s_per_thousand_requests=0.1,
    requests_per_s=1000.0,
    requests_per_cpu_s=10_000.0,
    request_p50_ms=1.0,
    request_p99_ms=2.0,
    ttft_p50_ms=0.5,
    ttft_p95_ms=0.7,
    delay_p50_ms=0.1,
    delay_p99_ms=0.2,
)


def _rounds(*chunks: float | None) -> list[Round]:
    return [replace(ROUND, cpu_s_per_million_chunks=value) for value in chunks]


def test_the_median_is_of_the_rounds() -> None:
    assert medians(_rounds(90.0, 10.0, 50.0))["cpu_s_per_million_chunks"] == 50.0


def test_a_peer_without_a_process_has_no_cpu_figure() -> None:
    assert medians(_rounds(None, None))["cpu_s_per_million_chunks"] is None
    assert spreads(_rounds(None, None))["cpu_s_per_million_chunks"] is None


def test_the_spread_is_half_the_range_by_the_median() -> None:
    assert spreads(_rounds(40.0, 50.0, 60.0))["cpu_s_per_million_chunks"] == pytest.approx(0.2)


def test_a_ratio_is_taken_round_by_round_so_that_a_slow_moment_cancels() -> None:
    quiet_then_busy = _rounds(10.0, 100.0, 10.0)
    assert paired(_rounds(20.0, 200.0, 30.0), quiet_then_busy, "cpu_s_per_million_chunks") == 2.0


def test_added_time_is_less_the_direct_way() -> None:
    slower = [replace(ROUND, ttft_p50_ms=0.8)]
    assert added(slower, [ROUND], "ttft_p50_ms") == pytest.approx(0.3)


def test_the_report_compares_with_nginx_of_the_same_run() -> None:
    rounds = {"direct": _rounds(None), "nginx": _rounds(50.0), "gateway": _rounds(100.0)}
    run = Run(Machine("a cpu", 2, "6.1", "3.11.7"), Size(), rounds)
    assert as_json(run)["peers"]["gateway"]["ratio_chunks"] == 2.0
    assert "| gateway | 100.0 ±0% | 2.00 |" in markdown(run)


def test_a_report_without_nginx_leaves_ratios_out() -> None:
    run = Run(Machine("a cpu", 2, "6.1", "3.11.7"), Size(), {"gateway": _rounds(100.0)})
    assert as_json(run)["peers"]["gateway"]["ratio_chunks"] is None


def test_streams_are_spread_over_their_length_and_over_the_interval() -> None:
    load = Load(stream=True, concurrency=16, tokens=64, interval_us=20_000)
    phases = sorted(number * load.spacing_us % load.interval_us for number in range(16))
    assert phases == [number * 1250 for number in range(16)]


def test_whole_answers_are_asked_for_without_stagger_and_pace() -> None:
    load = Load(stream=False, concurrency=32)
    assert load.spacing_us == 0
    assert "stream" not in load.body("m")
