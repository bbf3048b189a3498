"""How late the event loop is while a fleet is scraped: a 1 ms ticker in a serving gateway, scraped by a child."""

import asyncio
import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import uvloop

from benchmarks import samples
from benchmarks.fleet import DEPLOYMENTS, Fleet
from benchmarks.native_build import BenchmarkError
from gateway.app import Gateway, Listening, Settings, assemble
from gateway.core.clock import monotonic
from gateway.limits.keys import KeyRing
from gateway.metering.book import SpeedBook

TICK_S = 0.001
BAR_MS = 10.0
# As long as a scrape takes, in between: what the machine does by itself.
REST_S = 0.3
# Different speeds that each deployment has shown.
SPEEDS = 20

# For every line it reads: one scrape over a connection of its own, then the moments of its beginning and end.
_SCRAPER = """
import http.client, sys, time
for _ in sys.stdin:
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    size = len(answer.read())
    connection.close()
    print(began, time.monotonic(), answer.status, size, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Late:
    """How late the ticks were, in milliseconds."""

    ticks: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class ScrapeDelay:
    """Ticks within scrapes, and within rests as long in between. `seconds`: one scrape, the median."""

    deployments: int
    scrapes: int
    lines: int
    seconds: float
    scraping: Late
    resting: Late

    @property
    def holds(self) -> bool:
        return self.scraping.p99_ms < BAR_MS


def scrape_delay(scrapes: int) -> ScrapeDelay:
    """All deployments answer once more before each scrape, so that each has every line to write anew."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measured(scrapes))


async def _measured(scrapes: int) -> ScrapeDelay:
    catalog = samples.catalog(DEPLOYMENTS)
    gateway = assemble(Settings(catalog=catalog, keys=KeyRing(), port=0))
    # As `gateway serve` does.
    gc.collect()
    gc.freeze()
    listening, ready = Listening(gateway), asyncio.Event()
    serving = asyncio.create_task(listening.run(ready.set))
    ticks: list[tuple[float, float]] = []
    ticking = asyncio.create_task(_tick(ticks))
    try:
        await ready.wait()
        fleet = Fleet(gateway.metrics, catalog)
        _fill(gateway.book, fleet)
        spans = await _scraped(gateway, listening.port, scrapes, fleet)
    finally:
        ticking.cancel()
        listening.force()
        await serving
    durations = sorted(end - began for began, end in spans)
    rests = [(end, end + REST_S) for _, end in spans]
    return ScrapeDelay(
        deployments=DEPLOYMENTS,
        scrapes=scrapes,
        lines=gateway.metrics.series,
        seconds=durations[len(durations) // 2],
        scraping=_late(ticks, spans),
        resting=_late(ticks, rests),
    )


def _fill(book: SpeedBook, fleet: Fleet) -> None:
    """Statistics with something in them: answers of many speeds from every deployment."""
    for number in range(SPEEDS):
        for record in fleet.records:
            share = 0.5 + number / SPEEDS
            ttft_ms = 200.0 / share
            book.record(
                replace(
                    record,
                    timing=replace(record.timing, ttft_ms=ttft_ms, ttfa_ms=ttft_ms),
                    speed=replace(record.speed, output_tps=50.0 * share, chars_per_s=350.0 * share),
                    attempts=(replace(record.attempts[0], ttft_ms=ttft_ms),),
                )
            )


async def _scraped(gateway: Gateway, port: int, scrapes: int, fleet: Fleet) -> list[tuple[float, float]]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _SCRAPER, str(port)), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    spans = []
    try:
        for _ in range(scrapes):
            fleet.move()
            # Asked anew, as after five seconds.
            gateway.metrics.watch_speeds(gateway.book)
            await asyncio.sleep(0.05)
            child.stdin.write(b"\n")
            words = (await child.stdout.readline()).split()
            if len(words) != 4 or words[2] != b"200":
                raise BenchmarkError(f"a scrape failed: {words}")
            spans.append((float(words[0]), float(words[1])))
            await asyncio.sleep(REST_S)
    finally:
        child.stdin.close()
        await child.wait()
    return spans


async def _tick(ticks: list[tuple[float, float]]) -> None:
    """Notes when each tick was due, and how late it was."""
    while True:
        due = monotonic() + TICK_S
        await asyncio.sleep(TICK_S)
        ticks.append((due, monotonic() - due))


def _late(ticks: Sequence[tuple[float, float]], spans: Sequence[tuple[float, float]]) -> Late:
    late = sorted(late for due, late in ticks if any(began <= due + late and due <= end for began, end in spans))
    if not late:
        raise BenchmarkError("no tick fell into a scrape")
    return Late(
        ticks=len(late),
        p50_ms=late[len(late) // 2] * 1000,
        p99_ms=late[min(len(late) - 1, int(len(late) * 0.99))] * 1000,
        max_ms=late[-1] * 1000,
    )
