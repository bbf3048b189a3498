"""Counts in time slots: small whole numbers by quantity and bucket, so that any window is a sum of slots.

Everything kept here is a count, so two pages, two processes or two hours merge exactly, in any order.
"""

import sys
import zlib
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from gateway.metering.sketch import Counts, merge

# Counts by quantity; the quantities are numbered by the page.
Sheet = dict[int, Counts]

# What a damaged or hostile payload may unpack to at most: far more than an hour of any traffic has buckets.
MAX_UNPACKED = 1 << 20
_WORD = 8


def add(sheet: Sheet, quantity: int, bucket: int, count: int = 1) -> None:
    """Counts one thing."""
    counts = sheet.get(quantity)
    if counts is None:
        counts = sheet[quantity] = {}
    counts[bucket] = counts.get(bucket, 0) + count


def merge_sheets(into: Sheet, sheet: Mapping[int, Mapping[int, int]]) -> None:
    """Adds one sheet to another."""
    for quantity, counts in sheet.items():
        merge(into.setdefault(quantity, {}), counts)


def pack(sheet: Sheet) -> bytes:
    """A closed slot: a tenth of the dictionaries it was."""
    flat = array("q")
    for quantity, counts in sheet.items():
        flat.append(quantity)
        flat.append(len(counts))
        for pair in counts.items():
            flat.extend(pair)
    if sys.byteorder == "big":
        flat.byteswap()
    return zlib.compress(flat.tobytes(), 1)


def unpack(packed: bytes) -> Sheet:
    """The sheet again. Raises ValueError for what `pack` did not write."""
    inflating = zlib.decompressobj()
    try:
        raw = inflating.decompress(packed, MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError("no packed sheet") from error
    if len(raw) % _WORD or not inflating.eof:
        raise ValueError("no packed sheet")
    flat = array("q")
    flat.frombytes(raw)
    if sys.byteorder == "big":
        flat.byteswap()
    return _rebuild(flat)


def _rebuild(flat: Sequence[int]) -> Sheet:
    sheet: Sheet = {}
    at = 0
    while at < len(flat):
        if at + 2 > len(flat) or not 0 <= flat[at + 1] <= (len(flat) - at - 2) // 2:
            raise ValueError("no packed sheet")
        quantity, size = flat[at], flat[at + 1]
        pairs = flat[at + 2 : at + 2 + 2 * size]
        counts = dict(zip(pairs[::2], pairs[1::2], strict=True))
        if any(count < 0 for count in counts.values()):
            raise ValueError("no packed sheet")
        merge(sheet.setdefault(quantity, {}), counts)
        at += 2 + 2 * size
    return sheet


class Level:
    """The last `kept` slots of `slot_s` seconds, the running one included. Moments are those of one clock.

    A sample leaves with its slot, so a window is longer than it says by at most one slot.
    """

    __slots__ = ("_closed", "_kept", "_number", "_running", "_total", "slot_s")

    def __init__(self, slot_s: float, kept: int) -> None:
        self.slot_s = slot_s
        self._kept = kept
        self._number = -(1 << 62)
        self._running: Sheet = {}
        self._closed: deque[tuple[int, bytes]] = deque()
        # The closed slots together, packed; None where it is to be made anew.
        self._total: bytes | None = None

    def running(self, moment: float) -> Sheet:
        """The sheet of this moment, to add to. A moment before the running slot counts as of now."""
        number = int(moment // self.slot_s)
        if number > self._number:
            self._close(number)
        return self._running

    def _close(self, number: int) -> None:
        if self._running:
            self._closed.append((self._number, pack(self._running)))
            self._total = None
        self._number, self._running = number, {}
        self._expire(number)

    def _expire(self, number: int) -> None:
        while self._closed and self._closed[0][0] <= number - self._kept:
            self._closed.popleft()
            self._total = None

    def take(self, number: int, sheet: Sheet, moment: float) -> None:
        """Adds a slot of the past, as an earlier process left it. What is too old or of the future is left out."""
        self.running(moment)
        if number == self._number:
            merge_sheets(self._running, sheet)
        if not self._number - self._kept < number < self._number:
            return
        closed = dict(self._closed)
        if number in closed:
            earlier = unpack(closed[number])
            merge_sheets(earlier, sheet)
            sheet = earlier
        closed[number] = pack(sheet)
        self._closed = deque(sorted(closed.items()))
        self._total = None

    def absorb(self, other: "Level") -> None:
        """Adds all slots of another level of the same shape, up to the later of the two running slots."""
        moment = max(self._number, other._number) * self.slot_s
        for number, sheet in other.since(other._number - other._kept + 1):
            self.take(number, sheet, moment)

    def merged(self, moment: float, seconds: float | None = None) -> Sheet:
        """All slots that reach into the last `seconds` (None: into all that is kept), added up. A new sheet."""
        number = int(moment // self.slot_s)
        self._expire(number)
        whole = seconds is None
        oldest = number - self._kept + 1 if seconds is None else int((moment - seconds) // self.slot_s)
        if whole:
            if self._total is None:
                self._total = pack(_sum(packed for _, packed in self._closed))
            merged = unpack(self._total)
        else:
            merged = _sum(packed for at, packed in self._closed if at >= oldest)
        if self._number >= oldest:
            merge_sheets(merged, self._running)
        return merged

    def since(self, number: int) -> list[tuple[int, Sheet]]:
        """The slots from this number on, the running one last."""
        slots = [(at, unpack(packed)) for at, packed in self._closed if at >= number]
        return [*slots, (self._number, self._running)] if self._running else slots


def _sum(slots: Iterable[bytes]) -> Sheet:
    total: Sheet = {}
    for packed in slots:
        merge_sheets(total, unpack(packed))
    return total
