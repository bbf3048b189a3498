"""`python -m benchmarks.micro`: microseconds per call of the parts on the hot path, alone and with warm caches."""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from gateway.core.clock import monotonic
from gateway.core.record import ClientView, GenerationRecord, as_json
from gateway.core.types import (
    BreakerPolicy,
    Call,
    Caller,
    Catalog,
    Deployment,
    Needs,
    Provider,
    SagPolicy,
    Target,
    Timeouts,
)
from gateway.limits.keys import KeyEntry, KeyRing
from gateway.metering.book import SpeedBook
from gateway.metering.meter import Meter
from gateway.providers.dialects import DIALECTS
from gateway.routing.health import Health
from gateway.routing.planner import RoutePlanner
from gateway.telemetry.metrics import Metrics
from gateway.upstream.sse import Framer

CHUNK = (
    b'data: {"id":"chatcmpl-000000005eed0000","object":"chat.completion.chunk","created":1764500000,"model":"mock-1",'
    b'"choices":[{"index":0,"delta":{"content":" stream"},"finish_reason":null}],'
    b'"obfuscation":"00000000001234567890"}\n\n'
)
TOKENS = 64
BATCHES = 15
BATCH_S = 0.02

Work = Callable[[], object]
Timed = tuple[str, Work]


def per_call_us(work: Work) -> float:
    """Microseconds per call: the median of batches that each run for about 20 ms."""
    count = 1
    while _time(work, count) < BATCH_S:
        count *= 2
    return statistics.median(_time(work, count) for _ in range(BATCHES)) / count * 1e6


def _time(work: Work, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        work()
    return time.perf_counter() - began


def chunk_parts() -> Iterator[Timed]:
    """What is done with every chunk of a stream."""
    dialect, framer, meter = DIALECTS["openai"], Framer(), Meter(0.0)
    payload = CHUNK[6:-2]
    reading = dialect.read_event(None, payload)
    clock = iter(_ticks())

    def whole() -> None:
        at = next(clock)
        for event in framer.feed(CHUNK):
            if event.data is not None:
                meter.observe(dialect.read_event(event.name, event.data), at)

    yield "frame one event", lambda: framer.feed(CHUNK)
    yield "read one event", lambda: dialect.read_event(None, payload)
    yield "meter one event", lambda: meter.observe(reading, next(clock))
    yield "frame, read and meter one event", whole


def _ticks() -> Iterator[float]:
    at = 0.0
    while True:
        at += 0.02
        yield at


def request_parts() -> Iterator[Timed]:
    """What is done once per request."""
    catalog = _catalog(5)
    metrics, book = Metrics(catalog), SpeedBook(monotonic)
    health = Health(
        catalog.deployments.values(), BreakerPolicy(), SagPolicy(), book, metrics.transition, clock=monotonic
    )
    planner = RoutePlanner(catalog, health, random.Random(1))
    calls = {name: _call(target) for name, target in catalog.targets.items()}
    record = _record(catalog)
    ring = KeyRing([KeyEntry(f"key-{number}", f"{number:064x}") for number in range(10)])
    yield "tell the key among 10", lambda: ring.identify("sk-0123456789abcdef0123456789abcdef")
    yield "plan: 1 deployment", lambda: planner.plan(calls["m1"], monotonic())
    yield "plan: 5 deployments", lambda: planner.plan(calls["m5"], monotonic())
    yield "meter and judge a stream of 64", _metered
    yield "metrics of a record", lambda: metrics.record(record)
    yield "speed book of a record", lambda: book.record(record)
    yield "health of a record", lambda: health.record(record)
    yield "log line of a record", lambda: orjson.dumps(as_json(record))
    yield "scrape of 5 deployments", metrics.render


def _catalog(count: int) -> Catalog:
    provider = Provider(name="mock", base_url="http://127.0.0.1:1/v1")
    entries = [Deployment(f"mock/d{number}", provider, f"d{number}", f"d{number}") for number in range(count)]
    targets = {
        "m1": Target("m1", tuple(entries[:1]), "order", Timeouts()),
        "m5": Target("m5", tuple(entries), "order", Timeouts()),
    }
    return Catalog(targets, tuple(targets), {entry.id: entry for entry in entries}, {"mock": provider})


def _call(target: Target) -> Call:
    now = monotonic()
    return Call(
        id="gen-0",
        surface="chat.completions",
        path="/v1/chat/completions",
        body={"model": target.name, "stream": True},
        stream=True,
        target=target,
        caller=Caller(),
        needs=Needs(prompt_tokens=100),
        started=now,
        received=now,
    )


def _metered() -> Meter:
    reading = DIALECTS["openai"].read_event(None, CHUNK[6:-2])
    meter = Meter(0.0)
    meter.headers(0.2)
    for number in range(TOKENS):
        meter.observe(reading, 0.2 + number * 0.02)
    meter.finish("ok", 0.2 + TOKENS * 0.02)
    return meter


def _record(catalog: Catalog) -> GenerationRecord:
    deployment = catalog.deployments["mock/d0"]
    measured = _metered().finish("ok", 2.0)
    return GenerationRecord(
        id="gen-0",
        created="2026-01-01T00:00:00.000Z",
        surface="chat.completions",
        stream=True,
        requested_model="m1",
        outcome="ok",
        model=deployment.model,
        deployment=deployment.id,
        provider="mock",
        upstream_model=deployment.upstream_model,
        reason="only_choice",
        client=ClientView(200.0, 1500.0),
        timing=measured.timing,
        tokens=measured.tokens,
        chars=measured.chars,
        speed=measured.speed,
        stream_events=measured.stream_events,
        gaps_s=measured.gaps_s,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures every part and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args(arguments)
    table = Table("part", "µs", title="One call, warm caches; in a running gateway cold caches cost more")
    table.columns[1].justify = "right"
    figures = {}
    for parts in (chunk_parts(), request_parts()):
        for name, work in parts:
            figures[name] = per_call_us(work)
            table.add_row(name, f"{figures[name]:.2f}")
        table.add_section()
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
