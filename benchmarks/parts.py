"""The parts of the hot path, each alone: what a chunk, an observation, a request and a scrape are made of."""

import random
from collections.abc import Callable
from itertools import count

import orjson
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from benchmarks import samples
from benchmarks.fleet import DEPLOYMENTS, Fleet, twin
from benchmarks.timing import Part
from gateway.core.clock import monotonic
from gateway.core.record import as_json
from gateway.core.types import BreakerPolicy, Quirks, SagPolicy
from gateway.limits.keys import KeyEntry, KeyRing
from gateway.metering.book import SpeedBook
from gateway.metering.meter import Meter
from gateway.providers.dialects import DIALECTS
from gateway.routing.health import Health
from gateway.routing.planner import RoutePlanner
from gateway.telemetry.definitions import DEFINITIONS, TTFT_S
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.registry import Registry
from gateway.upstream.sse import Framer

CHUNK_BAR_US = 3.0
OBSERVATION_BAR_US = 0.3
GAP_BAR_US = 0.1

_LABELS = ("mock", "d0", "mock/d0")
_VALUES = tuple(0.02 + 0.0007 * number for number in range(samples.TOKENS))


def chunk_parts() -> list[Part]:
    """What is done with every chunk of a stream."""
    read, framer, meter = DIALECTS["openai"].reader(Quirks()), Framer(), Meter(0.0)
    payload = samples.CHUNK[6:-2]
    reading = read(None, payload)
    ticks = count(0.02, 0.02)

    def read_and_meter() -> None:
        meter.observe(read(None, payload), next(ticks))

    def whole() -> None:
        at = next(ticks)
        for event in framer.feed(samples.CHUNK):
            if event.data is not None:
                meter.observe(read(event.name, event.data), at)

    return [
        Part("frame one event", lambda: framer.feed(samples.CHUNK)),
        Part("read one event", lambda: read(None, payload)),
        Part("meter one event", lambda: meter.observe(reading, next(ticks))),
        Part("read and meter one event", read_and_meter, bar_us=CHUNK_BAR_US),
        Part("the same with its framing", whole, bar_us=CHUNK_BAR_US),
    ]


def observation_parts() -> list[Part]:
    """One value into one series, ours and prometheus-client's."""
    registry = Registry(DEFINITIONS)
    family, counter = (
        registry.histogram("gateway_ttfa_seconds"),
        registry.scalar("gateway_stalls_total").child(*_LABELS),
    )
    kept, under = family.child(*_LABELS), family.under(*_LABELS[:-1])
    names = ("provider", "model", "deployment")
    theirs = Histogram("theirs", "Theirs.", names, buckets=TTFT_S, registry=CollectorRegistry())
    kept_theirs = theirs.labels(*_LABELS)

    def each(observe: Callable[[float], None]) -> None:
        for value in _VALUES:
            observe(value)

    def looked_up() -> None:
        for value in _VALUES:
            under["mock/d0",].observe(value)

    def looked_up_theirs() -> None:
        for value in _VALUES:
            theirs.labels(*_LABELS).observe(value)

    calls = len(_VALUES)
    return [
        Part("prometheus-client: labels().observe()", looked_up_theirs, calls),
        Part("prometheus-client: kept child, observe()", lambda: each(kept_theirs.observe), calls),
        Part(
            "look up the series and observe",
            looked_up,
            calls,
            OBSERVATION_BAR_US,
            "prometheus-client: labels().observe()",
        ),
        Part(
            "observe on a kept child",
            lambda: each(kept.observe),
            calls,
            OBSERVATION_BAR_US,
            "prometheus-client: kept child, observe()",
        ),
        Part("add to a counter", lambda: each(counter.inc), calls, OBSERVATION_BAR_US),
        Part("observe a stream's gaps, each", lambda: kept.observe_all(_VALUES), calls, GAP_BAR_US),
    ]


def request_parts() -> list[Part]:
    """What is done once per request."""
    catalog = samples.catalog(5)
    metrics, book = Metrics(catalog), SpeedBook(monotonic)
    health = Health(
        catalog.deployments.values(), BreakerPolicy(), SagPolicy(), book, metrics.transition, clock=monotonic
    )
    planner = RoutePlanner(catalog, health, random.Random(1))
    calls = {name: samples.call(target) for name, target in catalog.targets.items()}
    record = samples.record(catalog.deployments["mock/d0"])
    ring = KeyRing([KeyEntry(f"key-{number}", f"{number:064x}") for number in range(10)])
    return [
        Part("tell the key among 10", lambda: ring.identify("sk-0123456789abcdef0123456789abcdef")),
        Part("plan: 1 deployment", lambda: planner.plan(calls["m1"], monotonic())),
        Part("plan: 5 deployments", lambda: planner.plan(calls["all"], monotonic())),
        Part(f"meter and judge a stream of {samples.TOKENS}", lambda: samples.metered().finish("ok", 2.0)),
        Part(f"metrics of a record, {samples.TOKENS - 1} gaps in it", lambda: metrics.record(record)),
        Part("speed book of a record", lambda: book.record(record)),
        Part("health of a record", lambda: health.record(record)),
        Part("log line of a record", lambda: orjson.dumps(as_json(record))),
    ]


def scrape_parts() -> list[Part]:
    """One exposition of a fleet, all in one go: CPU, not delay."""
    still, moving = Fleet().metrics, Fleet()
    theirs = twin(still.render().decode())
    name = f"prometheus-client: scrape of {DEPLOYMENTS} deployments"

    def moved() -> None:
        moving.move()
        moving.metrics.render()

    return [
        Part(name, lambda: generate_latest(theirs)),
        Part(f"scrape of {DEPLOYMENTS} deployments, none has moved", still.render, beside=name),
        Part(
            f"scrape of {DEPLOYMENTS} deployments, all have answered ({DEPLOYMENTS} records in it)", moved, beside=name
        ),
    ]
