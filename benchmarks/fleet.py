"""The metrics of a fleet of 200 deployments with every histogram filled, and their twin in prometheus-client."""

from collections.abc import Mapping
from dataclasses import replace

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from benchmarks import samples
from gateway.core.record import GenerationRecord
from gateway.core.types import Catalog
from gateway.telemetry.definitions import DEFINITIONS, Definition
from gateway.telemetry.metrics import Metrics

DEPLOYMENTS = 200
_KINDS = {"counter": Counter, "gauge": Gauge}


class Fleet:
    """`move` lets every deployment answer once more, so that the next scrape has to write all its histograms anew."""

    def __init__(self, metrics: Metrics | None = None, catalog: Catalog | None = None) -> None:
        catalog = catalog or samples.catalog(DEPLOYMENTS)
        self.metrics = metrics or Metrics(catalog)
        self.records = _records(catalog)
        self.move()

    def move(self) -> None:
        """One more answer of each, in every size of prompt in turn."""
        for record in self.records:
            self.metrics.record(record)


def _records(catalog: Catalog) -> list[GenerationRecord]:
    made = samples.record(next(iter(catalog.deployments.values())))
    return [
        replace(
            made,
            deployment=entry.id,
            provider=entry.provider.name,
            model=entry.model,
            tokens=replace(made.tokens, input=(1_000, 5_000, 20_000)[number % 3]),
            attempts=(replace(made.attempts[0], deployment=entry.id, model=entry.model),),
        )
        for number, entry in enumerate(catalog.deployments.values())
    ]


def twin(text: str) -> CollectorRegistry:
    """A registry of prometheus-client with every series of an exposition, each observed once."""
    definitions = {row.name.removesuffix("_total"): row for row in DEFINITIONS}
    registry = CollectorRegistry()
    for family in text_string_to_metric_families(text):
        row = definitions.get(family.name)
        if row is not None:
            _fill(row, [sample.labels for sample in family.samples], registry)
    return registry


def _fill(row: Definition, labels: list[Mapping[str, str]], registry: CollectorRegistry) -> None:
    children = {tuple(found[name] for name in row.labels) for found in labels}
    if row.kind == "histogram":
        histogram = Histogram(row.name, row.help, row.labels, buckets=row.bounds, registry=registry)
        for values in children:
            (histogram.labels(*values) if values else histogram).observe(1.0)
        return
    scalar = _KINDS[row.kind](row.name, row.help, row.labels, registry=registry)
    for values in children:
        (scalar.labels(*values) if values else scalar).inc()
