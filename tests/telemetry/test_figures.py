"""The speed book's figures as gauges: what is known is there, what is not has no line."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gateway.core.speed import Quantiles, SpeedReport, TtftModel, WindowReport
from gateway.core.types import Estimate, SpeedEvidence
from gateway.routing.sag import CONFIDENCE
from gateway.telemetry.definitions import FIGURES
from gateway.telemetry.figures import BOUND_ERRORS, DeploymentFigures
from gateway.telemetry.metrics import FIGURES_FOR_S, Metrics
from gateway.telemetry.registry import Registry
from tests.telemetry.books import EVIDENCE, REPORT, Book
from tests.telemetry.catalogs import catalog

SPEED = "gateway_deployment_speed_tokens_per_second"
TTFT = "gateway_deployment_ttft_seconds"
SAMPLES = "gateway_deployment_effective_samples"
DECODE = "gateway_server_clock_decode_ratio"
TTFT_DIFFERENCE = "gateway_server_clock_ttft_difference_seconds"
ESTIMATE = "gateway_token_estimate_ratio"
ALL = (SPEED, TTFT, SAMPLES, DECODE, TTFT_DIFFERENCE, ESTIMATE)

Shown = dict[tuple[str, str | None], float]


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _shown(metrics: Metrics, deployment: str = "p0/m0") -> Shown:
    """Values by metric and `stat`."""
    return {
        (sample.name, sample.labels.get("stat")): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
        if sample.name in ALL and sample.labels["deployment"] == deployment
    }


def _of(report: SpeedReport, evidence: SpeedEvidence = EVIDENCE) -> Shown:
    metrics = Metrics(catalog())
    metrics.watch_speeds(Book({"p0/m0": report}, {"p0/m0": evidence}), Clock())
    return _shown(metrics)


def test_every_figure_of_the_book_is_a_gauge() -> None:
    assert _of(REPORT) == pytest.approx(
        {
            (SPEED, "p50"): 83.0,
            (SPEED, "floor"): 61.0,
            (SPEED, "baseline"): 85.0,
            (SPEED, "lower"): 80 * math.exp(-0.1),
            (SPEED, "upper"): 80 * math.exp(0.1),
            (TTFT, "p50"): 0.24,
            (TTFT, "p90"): 0.31,
            (TTFT, "predicted_1k"): 0.235,
            (SAMPLES, None): 9.2,
            (DECODE, None): 0.98,
            (TTFT_DIFFERENCE, None): 0.041,
            (ESTIMATE, None): 1.07,
        }
    )


def test_what_is_not_known_has_no_line_and_no_samples_are_none() -> None:
    assert _of(SpeedReport(), SpeedEvidence()) == {(SAMPLES, None): 0.0}
    assert _shown(Metrics(catalog())) == {(SAMPLES, None): 0.0}


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_line(odd: float) -> None:
    assert (ESTIMATE, None) not in _of(replace(REPORT, estimate_ratio=odd))


def test_a_line_without_a_slope_predicts_its_base() -> None:
    assert _of(replace(REPORT, ttft_model=TtftModel(base_ms=200.0)))[TTFT, "predicted_1k"] == 0.2
    assert (TTFT, "predicted_1k") not in _of(replace(REPORT, ttft_model=TtftModel()))


def test_a_figure_that_is_lost_loses_its_line_and_comes_back() -> None:
    clock, book = Clock(), Book({"p0/m0": REPORT}, {"p0/m0": EVIDENCE})
    metrics = Metrics(catalog())
    metrics.watch_speeds(book, clock)
    assert _shown(metrics)[ESTIMATE, None] == 1.07
    book.reports["p0/m0"] = replace(REPORT, estimate_ratio=None)
    clock.now += FIGURES_FOR_S
    assert (ESTIMATE, None) not in _shown(metrics)
    book.reports["p0/m0"] = REPORT
    clock.now += FIGURES_FOR_S
    assert _shown(metrics)[ESTIMATE, None] == 1.07


def test_scrapes_close_together_share_one_reading_of_the_book() -> None:
    clock, book = Clock(), Book({"p0/m0": REPORT})
    metrics = Metrics(catalog())
    metrics.watch_speeds(book, clock)
    metrics.render()
    asked = book.asked
    clock.now += FIGURES_FOR_S - 0.1
    metrics.render()
    assert book.asked == asked
    clock.now += 0.1
    metrics.render()
    assert book.asked == 2 * asked


def test_each_deployment_has_its_own_figures() -> None:
    metrics = Metrics(catalog())
    metrics.watch_speeds(Book({"p1/m0": REPORT}, {"p1/m0": EVIDENCE}), Clock())
    assert _shown(metrics, "p0/m0") == {(SAMPLES, None): 0.0}
    assert _shown(metrics, "p1/m0")[SPEED, "baseline"] == 85.0


def test_the_bounds_are_as_far_out_as_routing_believes() -> None:
    assert BOUND_ERRORS == CONFIDENCE


_VALUE = st.none() | st.floats()


@given(p50=_VALUE, base=_VALUE, ratio=_VALUE, mean=st.floats(-1e3, 1e3), error=st.floats(0, 1e3))
def test_no_scrape_ever_holds_what_is_no_number(
    p50: float | None, base: float | None, ratio: float | None, mean: float, error: float
) -> None:
    window = WindowReport(ttft_ms=Quantiles(count=1, p50=p50), output_tps=Quantiles(count=1, p10=p50))
    report = SpeedReport(windows={"5m": window}, ttft_model=TtftModel(base_ms=base), clock_decode_ratio=ratio)
    registry = Registry(FIGURES)
    figures = DeploymentFigures(registry, "p0", "m0", "p0/m0")
    figures.refresh(Book({"p0/m0": report}, {"p0/m0": SpeedEvidence(speed=Estimate(mean, error, 1.0))}), 0.0)
    values = [line.rpartition(" ")[2] for line in "".join(registry.slices()).splitlines() if line[0] != "#"]
    assert len(values) >= 3
    assert all(math.isfinite(float(value)) for value in values)
