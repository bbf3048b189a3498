"""A speed book with a script."""

from collections.abc import Mapping

from gateway.core.speed import WINDOWS, Quantiles, SpeedReport, TtftModel, WindowReport
from gateway.core.types import Estimate, SpeedEvidence

REPORT = SpeedReport(
    windows={
        "5m": WindowReport(
            requests=12,
            samples=10,
            ttft_ms=Quantiles(count=12, p10=180.0, p50=240.0, p75=260.0, p90=310.0, p99=900.0),
            output_tps=Quantiles(count=10, p10=61.0, p50=83.0, p75=90.0, p90=95.0, p99=99.0),
        ),
        "1h": WindowReport(output_tps=Quantiles(count=99, p10=1.0, p50=2.0), ttft_ms=Quantiles(count=99, p50=9.0)),
    },
    ttft_model=TtftModel(base_ms=200.0, per_1k_tokens_ms=35.0, prefill_tps=28_571.0),
    baseline_tps=85.0,
    effective_samples=9.2,
    estimate_ratio=1.07,
    clock_decode_ratio=0.98,
    clock_ttft_difference_ms=41.0,
)
# ln 80 with an error of 0.04: bounds 10 % to either side.
EVIDENCE = SpeedEvidence(speed=Estimate(mean=4.382026634673881, error=0.04, count=9.2))


class Book:
    """Says what it was given, and counts how often it was asked."""

    def __init__(self, reports: Mapping[str, SpeedReport], evidence: Mapping[str, SpeedEvidence] | None = None) -> None:
        self.reports = dict(reports)
        self.given = dict(evidence or {})
        self.asked = 0

    def report(self, deployment_id: str, now: float, windows: Mapping[str, float] = WINDOWS) -> SpeedReport:
        assert set(windows) == {"5m"}
        self.asked += 1
        return self.reports.get(deployment_id, SpeedReport())

    def window(self, deployment_id: str, seconds: float, now: float) -> WindowReport:
        raise AssertionError("the report has the windows")

    def evidence(self, deployment_id: str, now: float) -> SpeedEvidence:
        return self.given.get(deployment_id, SpeedEvidence())

    def freeze(self, deployment_id: str, frozen: bool) -> None:
        raise AssertionError("a scrape changes nothing")
