"""Quantiles over a sliding window, from counts in logarithmic buckets: at most 2 % off, and windows merge by adding."""

from collections import deque
from collections.abc import Iterable
from math import ceil, exp, log

_ERROR = 0.02
_GAMMA = log((1 + _ERROR) / (1 - _ERROR))
# The value inside a bucket that is off by the same share at both of its ends.
_MIDDLE = log(2 / (1 + exp(_GAMMA)))

SLOTS = 12
SLOT_S = 25.0


class WindowedCounts:
    """Positive values of the last `SLOTS` slots. A value leaves with its slot, so a window is exact to one slot."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: deque[tuple[int, dict[int, int]]] = deque(maxlen=SLOTS)

    def add(self, value: float, now: float) -> None:
        """Values that are not above 0 have no logarithm and are left out."""
        if not value > 0:
            return
        slot = int(now // SLOT_S)
        if not self._slots or self._slots[-1][0] < slot:
            self._slots.append((slot, {}))
        bucket = ceil(log(value) / _GAMMA)
        counts = self._slots[-1][1]
        counts[bucket] = counts.get(bucket, 0) + 1

    def merged(self, now: float) -> dict[int, int]:
        """Counts by bucket of the slots that are still inside the window."""
        oldest = int(now // SLOT_S) - SLOTS + 1
        while self._slots and self._slots[0][0] < oldest:
            self._slots.popleft()
        total: dict[int, int] = {}
        for _, counts in self._slots:
            for bucket, count in counts.items():
                total[bucket] = total.get(bucket, 0) + count
        return total


def quantiles(counts: dict[int, int], shares: Iterable[float]) -> list[float | None]:
    """The values below which these shares (ascending) of the samples lie; None for each where there is no sample."""
    wanted = list(shares)
    total = sum(counts.values())
    if not total:
        return [None] * len(wanted)
    found: list[float | None] = []
    seen = 0
    ordered = iter(sorted(counts.items()))
    bucket = 0
    for share in wanted:
        rank = max(1, ceil(share * total))
        while seen < rank:
            bucket, count = next(ordered)
            seen += count
        found.append(exp(bucket * _GAMMA + _MIDDLE))
    return found
