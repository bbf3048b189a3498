"""CPU time per call: batches of every part in turn, so that a slow moment of the machine falls on all of them."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Work = Callable[[], object]

BATCH_S = 0.02


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is timed. `calls`: how often one `work()` does it. `bar_us`: what it should stay under.

    `beside`: the name of the part that it is compared with.
    """

    name: str
    work: Work
    calls: int = 1
    bar_us: float | None = None
    beside: str | None = None


@dataclass(frozen=True, slots=True)
class Timed:
    """Microseconds per call: the median over the rounds and the least of them. `ratio`: by the other part's, paired."""

    name: str
    us: float
    least_us: float
    bar_us: float | None = None
    beside: str | None = None
    ratio: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the median is under its bar; None without one."""
        return None if self.bar_us is None else self.us < self.bar_us


def timed(parts: Sequence[Part], rounds: int) -> list[Timed]:
    """Times all parts, `rounds` batches each. CPU time of this thread: what others do on the machine counts little."""
    counts = {part.name: _count(part.work) for part in parts}
    seen: dict[str, list[float]] = {part.name: [] for part in parts}
    for _ in range(rounds):
        for part in parts:
            count = counts[part.name]
            seen[part.name].append(_spent_s(part.work, count) / count / part.calls * 1e6)
    return [_judged(part, seen) for part in parts]


def _judged(part: Part, seen: Mapping[str, Sequence[float]]) -> Timed:
    mine = seen[part.name]
    ratio = None
    if part.beside is not None:
        ratio = statistics.median(a / b for a, b in zip(mine, seen[part.beside], strict=True))
    return Timed(part.name, statistics.median(mine), min(mine), part.bar_us, part.beside, ratio)


def _count(work: Work) -> int:
    """How many calls take about 20 ms."""
    count = 1
    while (spent := _spent_s(work, count)) < BATCH_S:
        count = max(count + 1, int(count * min(10.0, 1.2 * BATCH_S / max(spent, 1e-6))))
    return count


def _spent_s(work: Work, count: int) -> float:
    began = time.thread_time()
    for _ in range(count):
        work()
    return time.thread_time() - began
