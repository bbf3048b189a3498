"""`python -m benchmarks.statistics_memory`: what a week of statistics holds, and what asking for it costs."""

import argparse
import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path

from rich.console import Console
from rich.progress import track

from gateway.core.ports import Hour
from gateway.core.record import AttemptRecord, Chars, GenerationRecord, Speed, Timing, Tokens
from gateway.metering.book import SpeedBook
from gateway.metering.slots import HOUR_S

BAR_MB = 200.0
PER_DEPLOYMENTS = 1000
WEEK_HOURS = 7 * 24
# A request a second for an hour and a quarter: every short slot is filled.
LIVE_S = 4500
START_S = 1_700_000 * HOUR_S
_PAGE_BYTES = 4096


class Standing:
    """A clock that is moved by hand."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def wide_records(count: int, seed: int = 1) -> list[GenerationRecord]:
    """Answers of values over orders of magnitude, all prompt sizes and loads; every tenth waited in vain."""
    rng = random.Random(seed)
    return [_wide(rng, waited=index % 10 == 9) for index in range(count)]


def _wide(rng: random.Random, *, waited: bool) -> GenerationRecord:
    ttft_ms, tps = exp(rng.gauss(6, 1)), exp(rng.gauss(4, 1))
    attempt = AttemptRecord("p/m", "p", "m", "primary", "ok", 200, ttft_ms=ttft_ms, pool_wait_ms=0.1, cost_usd=0.001)
    if waited:
        attempt = replace(attempt, outcome="failed", error="timeout_ttft", ttft_ms=None, duration_ms=ttft_ms)
    return GenerationRecord(
        id="r",
        created="2026-01-01T00:00:00.000Z",
        surface="chat.completions",
        stream=True,
        requested_model="m",
        outcome="error" if waited else "ok",
        deployment="p/m",
        timing=Timing() if waited else Timing(ttft_ms=ttft_ms, ttfa_ms=1.1 * ttft_ms, max_gap_ms=exp(rng.gauss(4, 1))),
        tokens=Tokens(input=int(exp(rng.gauss(9.5, 2))), cached=0, output=500, source="usage"),
        chars=Chars(content=2000),
        speed=Speed(quality="error")
        if waited
        else Speed(output_tps=tps, chars_per_s=4 * tps, quality="ok", source="client", weight=0.97),
        in_flight=rng.choice((1, 2, 4, 7, 12, 30)),
        attempts=(attempt,),
    )


def named(record: GenerationRecord, deployment_id: str) -> GenerationRecord:
    """The record as one of another deployment."""
    attempts = tuple(replace(attempt, deployment=deployment_id) for attempt in record.attempts)
    return replace(record, deployment=deployment_id, attempts=attempts)


def wide_hour(records: Sequence[GenerationRecord]) -> bytes:
    """An hour of these records, as it is remembered."""
    clock = Standing()
    book = SpeedBook(clock, offset_s=START_S)
    for index, record in enumerate(records):
        clock.now = index * (HOUR_S - 1) / len(records)
        book.record(record)
    (hour,) = book.changed_hours(START_S, clock.now)
    return hour.payload


def fill(book: SpeedBook, clock: Standing, name: str, hour: bytes, records: Sequence[GenerationRecord]) -> None:
    """A week of full hours and the live traffic of the last one, over every slot of every level."""
    clock.now = 0.0
    before = int(START_S // HOUR_S)
    book.restore([Hour(name, before - back, hour) for back in range(1, WEEK_HOURS + 1)], {}, START_S, clock.now)
    own = [named(record, name) for record in records]
    for second in range(0, LIVE_S, max(1, LIVE_S // len(own))):
        clock.now = float(second)
        book.record(own[second % len(own)])
    book.report(name, clock.now)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fills, measures and prints. Exit code 1 where a thousand deployments would not fit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.statistics_memory", description=__doc__)
    parser.add_argument("--deployments", type=int, default=200, help="how many are filled (default: 200)")
    count = parser.parse_args(arguments).deployments
    records, console = wide_records(3600), Console()
    hour, live = wide_hour(records), records[:1500]
    clock = Standing()
    book = SpeedBook(clock, offset_s=START_S)
    fill(SpeedBook(clock, offset_s=START_S), clock, "p/first", hour, live)  # what is made once is not of one deployment
    gc.collect()
    before = _resident()
    for number in track(range(count), "filling", console=Console(stderr=True)):
        fill(book, clock, f"p/m{number}", hour, live)
    gc.collect()
    per_deployment = (_resident() - before) / count
    whole_mb = per_deployment * PER_DEPLOYMENTS / 1e6
    console.print(f"{count} deployments: {per_deployment / 1e3:.0f} kB each, {whole_mb:.0f} MB for {PER_DEPLOYMENTS}")
    console.print(f"an hour as it is stored: {len(hour)} bytes")
    for name, micros in _costs(book, clock, records):
        console.print(f"{name}: median {statistics.median(micros):.0f} µs, most {max(micros):.0f} µs")
    return 0 if whole_mb < BAR_MB else 1


def _costs(book: SpeedBook, clock: Standing, records: Sequence[GenerationRecord]) -> list[tuple[str, Sequence[float]]]:
    own = [named(record, "p/m0") for record in records[:1000]]

    def booked(every_s: float) -> list[float]:
        spent: list[float] = []
        for record in own:
            clock.now += every_s
            spent.append(_us(lambda record=record: book.record(record)))  # type: ignore[misc]
        return spent

    def told() -> list[float]:
        spent: list[float] = []
        for _ in range(50):
            clock.now += 31.0
            book.record(own[0])
            spent.append(_us(lambda: book.report("p/m0", clock.now)))
        return spent

    return [
        ("a record, a hundred a second", booked(0.01)),
        ("a record, one every five seconds (slots are closed)", booked(5.0)),
        ("a report after a slot was closed", told()),
        ("a report, again", [_us(lambda: book.report("p/m0", clock.now)) for _ in range(200)]),
        ("evidence", [_us(lambda: book.evidence("p/m0", clock.now)) for _ in range(200)]),
    ]


def _us(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1e6


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


if __name__ == "__main__":
    sys.exit(main())
