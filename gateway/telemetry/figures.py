"""Gauges of one deployment's statistics, as the speed book has them at the scrape. What is not known has no line."""

from math import exp
from typing import Protocol

from gateway.core.ports import SpeedEvidenceSource, SpeedReports
from gateway.core.speed import WINDOWS, SpeedReport, WindowReport
from gateway.core.types import Estimate
from gateway.telemetry.labels import SPEED_STATS, TTFT_STATS
from gateway.telemetry.registry import Registry

WINDOW = "5m"
_WINDOWS = {WINDOW: WINDOWS[WINDOW]}
# How far from the estimate its bounds are, in standard errors: as far as routing believes.
BOUND_ERRORS = 2.5


class SpeedStatistics(SpeedEvidenceSource, SpeedReports, Protocol):
    """What the speed book is asked."""


class DeploymentFigures:
    """The gauges of one deployment. Nothing is shown before the first `refresh`."""

    def __init__(self, registry: Registry, provider: str, model: str, deployment: str) -> None:
        self._deployment = deployment
        labels = (provider, model, deployment)
        speed = registry.scalar("gateway_deployment_speed_tokens_per_second")
        ttft = registry.scalar("gateway_deployment_ttft_seconds")
        self._speed = {stat: speed.child(*labels, stat) for stat in SPEED_STATS}
        self._ttft = {stat: ttft.child(*labels, stat) for stat in TTFT_STATS}
        self._samples = registry.scalar("gateway_deployment_effective_samples").child(*labels)
        self._decode = registry.scalar("gateway_server_clock_decode_ratio").child(*labels)
        self._ttft_difference = registry.scalar("gateway_server_clock_ttft_difference_seconds").child(*labels)
        self._estimate = registry.scalar("gateway_token_estimate_ratio").child(*labels)
        self._show(SpeedReport(), None)

    def refresh(self, book: SpeedStatistics, now: float) -> None:
        """Takes up what the book says at this moment."""
        self._show(book.report(self._deployment, now, _WINDOWS), book.evidence(self._deployment, now).speed)

    def _show(self, report: SpeedReport, estimate: Estimate | None) -> None:
        window = report.windows.get(WINDOW, WindowReport())
        speeds = (
            window.output_tps.p50,
            window.output_tps.p10,
            report.baseline_tps,
            _bound(estimate, -BOUND_ERRORS),
            _bound(estimate, BOUND_ERRORS),
        )
        for stat, speed in zip(SPEED_STATS, speeds, strict=True):
            self._speed[stat].show(speed)
        for stat, ms in zip(TTFT_STATS, (window.ttft_ms.p50, window.ttft_ms.p90, _predicted_1k(report)), strict=True):
            self._ttft[stat].show(_seconds(ms))
        self._samples.show(estimate.count if estimate else 0.0)
        self._decode.show(report.clock_decode_ratio)
        self._ttft_difference.show(_seconds(report.clock_ttft_difference_ms))
        self._estimate.show(report.estimate_ratio)


def _bound(estimate: Estimate | None, errors: float) -> float | None:
    """The estimate is of a logarithm; beyond any speed there is, exp would overflow."""
    return None if estimate is None else exp(min(estimate.mean + errors * estimate.error, 100.0))


def _predicted_1k(report: SpeedReport) -> float | None:
    base, slope = report.ttft_model.base_ms, report.ttft_model.per_1k_tokens_ms
    return None if base is None else base + (slope or 0.0)


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000.0
