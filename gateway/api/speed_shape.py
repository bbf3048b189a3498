"""One deployment in the shape of /v1/speed. Pure functions; what is not known is null."""

from collections.abc import Mapping
from typing import Any

from gateway.core.speed import LoadBin, Quantiles, SpeedReport, WindowReport
from gateway.core.types import Deployment, Health, Price

Shown = dict[str, Any]


def present(deployment: Deployment, health: Health, until: str | None, in_flight: int | None) -> Shown:
    """What it is, and how it is right now. `until` is a label in UTC."""
    return {
        "id": deployment.id,
        "provider": deployment.provider.name,
        "model": deployment.model,
        "state": health.state,
        "reason": health.reason,
        "until": until,
        # This version has no tiers: neither a promise nor a verdict.
        "sold_tier": None,
        "measured_tier": None,
        "in_flight": in_flight,
        "price": _price(deployment.price),
        "context": deployment.context,
        "max_output": deployment.max_output,
    }


def learnt(report: SpeedReport) -> Shown:
    """What was learnt of it, apart from the windows."""
    model = report.ttft_model
    return {
        "baseline_tps": _round(report.baseline_tps, 1),
        "effective_samples": round(report.effective_samples, 1),
        "mean_in_flight": _round(report.mean_in_flight, 1),
        "chars_per_token": _round(report.chars_per_token, 3),
        "estimate_ratio": _round(report.estimate_ratio, 4),
        "clock_decode_ratio": _round(report.clock_decode_ratio, 4),
        "clock_ttft_difference_ms": _round(report.clock_ttft_difference_ms, 1),
        "ttft_model": {
            "base_ms": _round(model.base_ms, 1),
            "per_1k_tokens_ms": _round(model.per_1k_tokens_ms, 2),
            "prefill_tps": _round(model.prefill_tps, 1),
        },
        "load": [_load(entry) for entry in report.load],
    }


def window(report: WindowReport) -> Shown:
    """One window. Percentiles are of the sample."""
    speed = report.output_tps
    return {
        "requests": report.requests,
        "samples": report.samples,
        "server_samples": report.server_samples,
        "errors": report.errors,
        "rate_limited": report.rate_limited,
        "uptime": _round(report.uptime, 4),
        "consistency": _round(report.consistency, 4),
        "ttft_ms": _spread(report.ttft_ms),
        "ttfa_ms": _spread(report.ttfa_ms),
        "output_tps": {**_spread(speed), "floor": _round(speed.p10, 1)},
        "chars_per_s": _spread(report.chars_per_s),
        "max_gap_ms": _spread(report.max_gap_ms),
        "ttft_ms_by_prompt": _by_prompt(report.ttft_ms_by_prompt),
        "qualities": dict(report.qualities),
        "cost_usd": _round(report.cost_usd, 9),
    }


def _spread(values: Quantiles) -> Shown:
    return {
        "count": values.count,
        "p10": _round(values.p10, 1),
        "p50": _round(values.p50, 1),
        "p75": _round(values.p75, 1),
        "p90": _round(values.p90, 1),
        "p99": _round(values.p99, 1),
    }


def _by_prompt(sizes: Mapping[str, Quantiles]) -> Shown:
    return {size: _spread(values) for size, values in sizes.items()}


def _load(entry: LoadBin) -> Shown:
    return {"in_flight": entry.in_flight, "output_tps": _round(entry.output_tps, 1), "samples": entry.samples}


def _price(price: Price | None) -> Shown | None:
    if price is None:
        return None
    return {"input": price.input, "cached_input": price.cached_input, "output": price.output}


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
