"""Streams that are no speed sample, and a client that hardly reads: what they do to a deployment's figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import truth_check, truth_client
from benchmarks.truth_setting import ODD, Setting

SOUND = 10
EACH = 3
DEPLOYMENT = f"{ODD}/{ODD}"
# What makes a stream of the quality, in the words of a request's `sim`. None is as fast as the sound ones, so that one
# that counted would move the quantiles.
ODD_STREAMS: Mapping[str, Mapping[str, Any]] = {
    "burst": {"faults": [{"kind": "buffered"}], "tps": 5000},
    "short": {"output_tokens": 4, "tps": 40},
    "hidden_reasoning": {"reasoning": {"tokens": 300, "streamed": False, "seconds": 0.2}, "tps": 5000},
    "estimate": {"faults": [{"kind": "no_usage"}], "tps": 10},
    "truncated": {"faults": [{"kind": "cut", "after_tokens": 20}], "tps": 1000},
}
_LONG = {"output_tokens": 2000, "tps": 1000}
# More than the buffers on the way hold: the gateway has to wait for this client.
_FLOOD = {"output_tokens": 8000, "tps": 4000, "tokens_per_chunk": 2}
SLOW_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement and what was found."""

    name: str
    found: str
    holds: bool


async def findings(run: Setting) -> list[Finding]:
    """Sound streams first, then the odd ones: the speed figures must stay what they were."""
    numbers = iter(range(1, 1000))
    sent = [await truth_client.one(run.port, ODD, next(numbers)) for _ in range(SOUND)]
    records = run.records([one.id for one in sent])
    speeds = [record["speed"]["output_tps"] for record in records.values()]
    ids = []
    for fields in ODD_STREAMS.values():
        ids += [(await truth_client.one(run.port, ODD, next(numbers), sim=fields)).id for _ in range(EACH)]
    for _ in range(EACH):
        request = truth_client.request_bytes(ODD, next(numbers), sim=_LONG)
        ids.append(await truth_client.leaving(run.port, request, events=30))
    run.records(ids)
    found = _of_qualities(run, speeds)
    return [*found, await _of_slow_client(run, next(numbers), speeds)]


def _of_qualities(run: Setting, speeds: list[float]) -> list[Finding]:
    text, window = run.metrics(), run.speed(DEPLOYMENT)
    counted = truth_check.counters(text, "gateway_speed_samples_total", "quality", DEPLOYMENT)
    wanted = {"ok": SOUND, **dict.fromkeys([*ODD_STREAMS, "cancelled"], EACH)}
    found = [
        Finding(f"{quality}: counted in gateway_speed_samples_total", f"{counted.get(quality, 0):g} of {count}",
                counted.get(quality, 0) == count)
        for quality, count in wanted.items()
    ]  # fmt: skip
    histogram = truth_check.histogram(text, "gateway_output_tokens_per_second", DEPLOYMENT)
    error = truth_check.worst_quantile(window["output_tps"], speeds)
    return [
        *found,
        Finding("the speed histogram has the sound ones alone", f"{truth_check.total(histogram)} of {SOUND}",
                truth_check.histogram_agrees(histogram, speeds, truth_check.ROUNDING)),
        Finding("the samples of /v1/speed are the sound ones alone", f"{window['samples']} of {SOUND}",
                window["samples"] == SOUND),
        Finding("the quantiles of /v1/speed are theirs", f"off by {error:.1%}", error <= truth_check.QUANTILE_ERROR),
    ]  # fmt: skip


async def _of_slow_client(run: Setting, number: int, speeds: list[float]) -> Finding:
    """Its own rate is the provider's or none; the figures of the deployment stay as they were."""
    request = truth_client.request_bytes(ODD, number, sim=_FLOOD)
    generation = await truth_client.slowly(run.port, request, SLOW_S)
    record = run.records([generation])[generation]
    rate, quality = record["speed"]["output_tps"], record["speed"]["quality"]
    blocked_ms = record["timing"]["client_blocked_ms"]
    if quality == "ok":
        speeds = [*speeds, rate]
    error = truth_check.worst_quantile(run.speed(DEPLOYMENT)["output_tps"], speeds)
    sound = rate is None or abs(rate / _FLOOD["tps"] - 1) < truth_check.RATE_P95
    told = "no rate" if rate is None else f"{rate:,.0f} of {_FLOOD['tps']:,} tok/s"
    return Finding(
        f"a client that reads 1 KB/s for {SLOW_S:g} s changes no speed",
        f"{quality}, {told}, blocked for {blocked_ms:,.0f} ms; quantiles off by {error:.1%}",
        blocked_ms > 0 and sound and error <= truth_check.QUANTILE_ERROR,
    )
