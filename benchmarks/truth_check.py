"""What was recorded against what was sent: errors of single streams, and quantiles against the exact ones. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.native_build import BenchmarkError

TTFT_MEDIAN_MS, TTFT_P95_MS = 1.0, 10.0
RATE_MEDIAN, RATE_P95 = 0.01, 0.05
QUANTILE_ERROR = 0.02
# Half of the last digit that records and APIs have: milliseconds and tokens a second at 0.1.
ROUNDING = 0.05
SHARES = {"p10": 0.1, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99}

Json = Mapping[str, Any]
Buckets = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Pair:
    """One stream: recorded and true. Rates None where the record states none."""

    quality: str
    ttft_ms: float
    true_ttft_ms: float
    rate: float | None
    true_rate: float

    @property
    def ttft_error_ms(self) -> float:
        return abs(self.ttft_ms - self.true_ttft_ms)

    @property
    def rate_error(self) -> float:
        """As a share; infinite where no rate is stated."""
        return float("inf") if self.rate is None else abs(self.rate / self.true_rate - 1)


def paired(record: Json, truth: Json, rate: str, first_tokens: int) -> Pair:
    """`rate`: the field of the record's speed. `first_tokens`: how many the provider's first write had."""
    if truth["prompt_tokens"] != record["tokens"]["input"]:
        raise BenchmarkError("a record was matched with another stream's truth")
    window_s = truth["last_token"] - truth["first_token"]
    return Pair(
        quality=record["speed"]["quality"],
        ttft_ms=record["timing"]["ttft_ms"],
        true_ttft_ms=(truth["first_token"] - truth["request_read"]) * 1000,
        rate=record["speed"][rate],
        true_rate=(truth["tokens"] - first_tokens) / window_s,
    )


@dataclass(frozen=True, slots=True)
class Errors:
    """Median and 95th percentile, with the bars they should stay under."""

    median: float
    p95: float
    median_bar: float
    p95_bar: float

    @property
    def holds(self) -> bool:
        return self.median < self.median_bar and self.p95 < self.p95_bar


def ttft_errors(pairs: Sequence[Pair]) -> Errors:
    """Milliseconds."""
    errors = [pair.ttft_error_ms for pair in pairs]
    return Errors(median(errors), exact(errors, 0.95), TTFT_MEDIAN_MS, TTFT_P95_MS)


def rate_errors(pairs: Sequence[Pair]) -> Errors:
    """Shares."""
    errors = [pair.rate_error for pair in pairs]
    return Errors(median(errors), exact(errors, 0.95), RATE_MEDIAN, RATE_P95)


def exact(values: Sequence[float], share: float) -> float:
    """The least value that this share of them does not exceed."""
    return sorted(values)[max(1, ceil(share * len(values))) - 1]


def histogram(text: str, name: str, deployment: str) -> Buckets:
    """Upper bounds with cumulative counts of one deployment, all its prompt sizes together."""
    counts: dict[float, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples if family.name == name else ():
            if sample.name == f"{name}_bucket" and sample.labels["deployment"] == deployment:
                bound = float(sample.labels["le"])
                counts[bound] = counts.get(bound, 0.0) + sample.value
    return sorted(counts.items())


def counters(text: str, name: str, label: str, deployment: str) -> dict[str, float]:
    """A counter of one deployment by one label's values."""
    return {
        sample.labels[label]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and sample.labels["deployment"] == deployment
    }


def total(buckets: Buckets) -> int:
    """How many values a histogram has."""
    return int(buckets[-1][1]) if buckets else 0


def in_its_bucket(buckets: Buckets, values: Sequence[float], share: float, rounding: float) -> bool:
    """Whether the histogram's quantile lies in the bucket of the exact one."""
    if total(buckets) != len(values):
        return False
    rank, low = max(1, ceil(share * len(values))), float("-inf")
    for bound, count in buckets:
        if count >= rank:
            return low - rounding <= exact(values, share) <= bound + rounding
        low = bound
    return False


def histogram_agrees(buckets: Buckets, values: Sequence[float], rounding: float) -> bool:
    """All quantiles that are looked at."""
    return all(in_its_bucket(buckets, values, share, rounding) for share in SHARES.values())


def worst_quantile(reported: Json, values: Sequence[float]) -> float:
    """How far /v1/speed's quantiles are from the exact ones, as a share, beyond what rounding explains."""
    worst = 0.0
    for name, share in SHARES.items():
        true, told = exact(values, share), reported[name]
        if told is None:
            return float("inf")
        worst = max(worst, max(0.0, abs(told - true) - 2 * ROUNDING) / true)
    return worst
