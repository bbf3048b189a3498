"""Counters, gauges and histograms on plain lists: an observation is a bisect and two additions.

Not safe across threads, and need not be: every instrument belongs to the event loop's thread, and so does the scrape.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import isfinite, isnan, nan
from typing import Generic, Protocol, TypeVar

from gateway.telemetry.render import family_head, histogram_prefixes, number, series_prefix

Labels = tuple[str, ...]
S = TypeVar("S")


class Series(Protocol):
    """One combination of labels."""

    @property
    def lines(self) -> int:
        """How many lines it has where it has any: time series to Prometheus."""

    def text(self) -> str:
        """Its lines in the exposition."""


class Family(Protocol):
    """All series of one metric."""

    name: str

    def head(self) -> str:
        """The HELP and TYPE lines."""

    def children(self) -> Iterable[Series]: ...


class Scalar:
    """One number that is added to or set: a series of a counter or of a gauge."""

    __slots__ = ("_prefix", "_rendered", "_rendered_value", "value")
    lines = 1

    def __init__(self, prefix: str) -> None:
        self.value = 0.0
        self._prefix = prefix
        self._rendered_value = 0.0
        self._rendered = f"{prefix}0\n"

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount

    def dec(self) -> None:
        self.value -= 1.0

    def set(self, value: float) -> None:
        self.value = value

    def show(self, value: float | None) -> None:
        """A figure that may be missing: None, and what is no number, has no line until there is a value again."""
        self.value = nan if value is None or not isfinite(value) else value

    def text(self) -> str:
        """The line, kept until the value changes."""
        value = self.value
        if value != self._rendered_value:
            self._rendered_value = value
            self._rendered = "" if isnan(value) else f"{self._prefix}{number(value)}\n"
        return self._rendered


class Buckets:
    """A series of a histogram: counts per bucket, and the sum of what was observed."""

    __slots__ = ("_bounds", "_counts", "_prefixes", "_rendered", "_rendered_counts", "_sum")

    def __init__(self, bounds: Sequence[float], prefixes: Sequence[str]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._prefixes = prefixes
        self._rendered_counts: list[int] = []
        self._rendered = ""

    @property
    def lines(self) -> int:
        return len(self._prefixes)

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def observe_all(self, values: Sequence[float]) -> None:
        """Many at once: a stream's gaps. In order they need one search a bucket, not one a value."""
        if not values:
            return
        bounds, counts = self._bounds, self._counts
        ordered = sorted(values)
        below = 0
        for bucket in range(bisect_left(bounds, ordered[0]), len(bounds)):
            upto = bisect_right(ordered, bounds[bucket], below)
            counts[bucket] += upto - below
            below = upto
            if upto == len(ordered):
                break
        counts[-1] += len(ordered) - below
        self._sum += sum(ordered)

    def text(self) -> str:
        """The lines, kept until something is observed. The counts tell: an observation always moves one."""
        if self._counts != self._rendered_counts:
            self._rendered_counts = self._counts.copy()
            self._rendered = self._format()
        return self._rendered

    def _format(self) -> str:
        prefixes, lines, running = self._prefixes, [], 0
        for prefix, count in zip(prefixes, self._counts, strict=False):
            running += count
            lines.append(f"{prefix}{running}\n")
        lines.append(f"{prefixes[-2]}{number(self._sum)}\n{prefixes[-1]}{running}\n")
        return "".join(lines)


class Under(dict[Labels, S], Generic[S]):
    """The series of a family that begin with the same labels, by the remaining ones: found with one look-up.

    A series is made on first use, as by `child`.
    """

    __slots__ = ("_child", "_first")

    def __init__(self, child: Callable[..., S], first: Labels) -> None:
        self._child = child
        self._first = first

    def __missing__(self, rest: Labels) -> S:
        series = self[rest] = self._child(*self._first, *rest)
        return series


class ScalarFamily:
    """A counter or a gauge."""

    __slots__ = ("_by_labels", "_kind", "help", "label_names", "name")

    def __init__(self, kind: str, name: str, help_text: str, label_names: Labels) -> None:
        self._kind = kind
        self.name = name
        self.help = help_text
        self.label_names = label_names
        self._by_labels: dict[Labels, Scalar] = {}

    def child(self, *labels: str) -> Scalar:
        """The series with these label values, made on first use and the same one ever after."""
        series = self._by_labels.get(labels)
        if series is None:
            series = Scalar(series_prefix(self.name, self.label_names, labels))
            self._by_labels[labels] = series
        return series

    def under(self, *first: str) -> Under[Scalar]:
        """The series whose first labels have these values."""
        return Under(self.child, first)

    def head(self) -> str:
        return family_head(self.name, self._kind, self.help)

    def children(self) -> Iterable[Scalar]:
        return self._by_labels.values()


class HistogramFamily:
    """A histogram with fixed upper bounds, ascending; `+Inf` is added."""

    __slots__ = ("_bounds", "_by_labels", "help", "label_names", "name")

    def __init__(self, name: str, help_text: str, label_names: Labels, bounds: Sequence[float]) -> None:
        self.name = name
        self.help = help_text
        self.label_names = label_names
        # Floats all: comparing a float with an int is the slow way.
        self._bounds = tuple(float(bound) for bound in bounds)
        self._by_labels: dict[Labels, Buckets] = {}

    def child(self, *labels: str) -> Buckets:
        """The series with these label values, made on first use and the same one ever after."""
        series = self._by_labels.get(labels)
        if series is None:
            series = Buckets(self._bounds, histogram_prefixes(self.name, self.label_names, labels, self._bounds))
            self._by_labels[labels] = series
        return series

    def under(self, *first: str) -> Under[Buckets]:
        """The series whose first labels have these values."""
        return Under(self.child, first)

    def head(self) -> str:
        return family_head(self.name, "histogram", self.help)

    def children(self) -> Iterable[Buckets]:
        return self._by_labels.values()
