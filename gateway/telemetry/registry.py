"""The registry: every instrument by its name, and the exposition of them all."""

from collections.abc import Iterable, Iterator
from time import perf_counter

from gateway.telemetry.definitions import Definition
from gateway.telemetry.instruments import Family, HistogramFamily, ScalarFamily

# A scrape gives the event loop back at least this often: a late read is a wrong TTFT.
SLICE_S = 0.001
# What has not changed is quickly at hand, but the kernel takes its time over megabytes.
SLICE_CHARS = 128 * 1024
# Series formatted between two looks at the clock.
_STRIDE = 8


class Registry:
    """Makes the instruments of a table of definitions."""

    __slots__ = ("_histograms", "_order", "_scalars")

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._scalars: dict[str, ScalarFamily] = {}
        self._histograms: dict[str, HistogramFamily] = {}
        self._order: list[Family] = []
        for row in definitions:
            self._order.append(self._make(row))

    def _make(self, row: Definition) -> Family:
        if row.name in self._scalars or row.name in self._histograms:
            raise ValueError(f"{row.name} is defined twice")
        if row.kind == "histogram":
            histogram = HistogramFamily(row.name, row.help, row.labels, row.bounds)
            self._histograms[row.name] = histogram
            return histogram
        scalar = ScalarFamily(row.kind, row.name, row.help, row.labels)
        self._scalars[row.name] = scalar
        return scalar

    def scalar(self, name: str) -> ScalarFamily:
        """A counter or gauge. KeyError where none has this name."""
        return self._scalars[name]

    def histogram(self, name: str) -> HistogramFamily:
        """A histogram. KeyError where none has this name."""
        return self._histograms[name]

    @property
    def series(self) -> int:
        """Time series so far; those of figures that are missing now are counted too."""
        return sum(series.lines for family in self._order for series in family.children())

    def slices(self, slice_s: float = SLICE_S) -> Iterator[str]:
        """The exposition in pieces that take about `slice_s` to make. Each series is of one moment."""
        parts: list[str] = []
        until, size = perf_counter() + slice_s, 0
        for family in self._order:
            parts.append(family.head())
            # A copy: between two slices a first error may add a series.
            for index, series in enumerate(tuple(family.children())):
                text = series.text()
                parts.append(text)
                size += len(text)
                if size >= SLICE_CHARS or (index % _STRIDE == 0 and perf_counter() >= until):
                    yield "".join(parts)
                    parts.clear()
                    until, size = perf_counter() + slice_s, 0
        yield "".join(parts)


def paused_every(slice_s: float, steps: Iterable[object]) -> Iterator[None]:
    """Does the steps, and yields whenever they have taken `slice_s`."""
    until = perf_counter() + slice_s
    for _ in steps:
        if perf_counter() >= until:
            yield
            until = perf_counter() + slice_s
