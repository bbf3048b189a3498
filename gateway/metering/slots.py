"""Counts in time slots of growing length: any window is a sum of slots, and no count is kept twice.

What is counted goes into the running slot of the finest level alone. A slot that is over is packed; when the last of
those inside a slot of the next level is over, that one is their sum. Everything kept here is a count, so two pages,
two processes or two hours add up exactly, in any order.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from gateway.metering.packing import Sheet, pack, unpack
from gateway.metering.sketch import merge

HOUR_S = 3600.0
# Slots of (seconds, how many that are over are kept). Each length is a multiple of the one before.
LEVELS = ((30.0, 10), (300.0, 12), (HOUR_S, 24), (6 * HOUR_S, 28))
FINEST_S = LEVELS[0][0]
_HOURLY = next(index for index, (slot_s, _) in enumerate(LEVELS) if slot_s == HOUR_S)
# Sums of its latest slots that a level keeps at hand.
_KEPT_PARTS = 3
# Hours that may wait until they are stored.
_OWN_HOURS = 4


def level_of(seconds: float) -> int:
    """The level whose slots a window of this length begins with: the first that reaches so far."""
    return next((index for index, (slot_s, kept) in enumerate(LEVELS) if seconds <= slot_s * kept), len(LEVELS) - 1)


def add(sheet: Sheet, quantity: int, bucket: int, count: int = 1) -> None:
    """Counts one thing."""
    counts = sheet.get(quantity)
    if counts is None:
        counts = sheet[quantity] = {}
    counts[bucket] = counts.get(bucket, 0) + count


def merge_sheets(into: Sheet, sheet: Mapping[int, Mapping[int, int]]) -> None:
    """Adds one sheet to another."""
    for quantity, counts in sheet.items():
        mine = into.get(quantity)
        if mine is None:
            into[quantity] = dict(counts)
        else:
            merge(mine, counts)


def _take_away(sheet: Sheet, part: Sheet) -> None:
    """Undoes `merge_sheets`: what was counted in the part alone is gone."""
    for quantity, counts in part.items():
        left = sheet.pop(quantity, {})
        rest = {bucket: count - counts.get(bucket, 0) for bucket, count in left.items()}
        rest = {bucket: count for bucket, count in rest.items() if count > 0}
        if rest:
            sheet[quantity] = rest


class Level:
    """The slots of one length that are over, packed, by their number since the start of the clock."""

    __slots__ = ("_all", "_changes", "_kept", "_parts", "closed", "slot_s")

    def __init__(self, slot_s: float, kept: int) -> None:
        self.slot_s = slot_s
        self._kept = kept
        self.closed: dict[int, bytes] = {}
        # The sum of all slots as it was last asked for, packed, and what has come (True) and gone since.
        self._all: bytes | None = None
        self._changes: list[tuple[bool, bytes]] = []
        # Sums of the latest slots, by the number they begin with.
        self._parts: dict[int, bytes] = {}

    def put(self, number: int, packed: bytes) -> None:
        """Keeps a slot that is over; adds it to what is kept of it already."""
        self._note(True, packed)
        if number in self.closed:
            packed = pack(summed((self.closed[number], packed)))
        self.closed[number] = packed

    def expire(self, running: int) -> None:
        """Drops what is too old beside the slot that is running."""
        for number in [number for number in self.closed if number < running - self._kept]:
            self._note(False, self.closed.pop(number))

    def _note(self, came: bool, packed: bytes) -> None:
        self._parts.clear()
        if self._all is not None:
            self._changes.append((came, packed))
            if len(self._changes) > self._kept:  # to add up anew is no dearer, and nobody asks
                self._all = None
                self._changes.clear()

    def within(self, first: int, end: int) -> list[bytes]:
        """The slots from one number to before another."""
        return [packed for number, packed in self.closed.items() if first <= number < end]

    def since(self, first: int) -> Sheet:
        """The slots from a number on together. A new sheet."""
        if all(number >= first for number in self.closed):
            return self._everything()
        known = self._parts.get(first)
        if known is not None:
            return unpack(known)
        total = summed(packed for number, packed in self.closed.items() if number >= first)
        if len(self._parts) >= _KEPT_PARTS:
            self._parts.clear()
        self._parts[first] = pack(total)
        return total

    def _everything(self) -> Sheet:
        if self._all is None:
            total = summed(self.closed.values())
        else:
            total = unpack(self._all)
            if not self._changes:
                return total
            for came, packed in self._changes:
                if came:
                    merge_sheets(total, unpack(packed))
                else:
                    _take_away(total, unpack(packed))
            self._changes.clear()
        self._all = pack(total)
        return total


class Shelf:
    """All levels of one page. Moments are seconds since the start of a clock on which hours begin with the hour."""

    __slots__ = ("_ended", "_levels", "_number", "_running", "_touched")

    def __init__(self) -> None:
        self._levels = tuple(Level(slot_s, kept) for slot_s, kept in LEVELS)
        self._running: Sheet = {}
        self._number: int | None = None
        # Own hours that ended and were not asked for since; whether the running one has changed since it was.
        self._ended: dict[int, bytes] = {}
        self._touched = False

    def running(self, moment: float) -> Sheet:
        """The sheet to count in. A moment before the running slot counts as of now."""
        self._roll(moment)
        self._touched = True
        return self._running

    def _roll(self, moment: float) -> int:
        """Closes the slots that are over at this moment. Returns the number of the running one."""
        number, before = int(moment // FINEST_S), self._number
        if before is not None and number <= before:
            return before
        self._number = number
        if before is not None:
            self._close(before, number)
            for level in self._levels:
                level.expire(int(moment // level.slot_s))
        return number

    def _close(self, before: int, number: int) -> None:
        if self._running:
            self._levels[0].put(before, pack(self._running))
            self._running = {}
        for finer, coarser in pairwise(self._levels):
            inside = round(coarser.slot_s / finer.slot_s)
            before, number = before // inside, number // inside
            if before == number:
                return
            over = finer.within(before * inside, (before + 1) * inside)
            if over:
                counts = over[0] if len(over) == 1 else pack(summed(over))
                coarser.put(before, counts)
                if coarser.slot_s == HOUR_S and self._touched:
                    self._end_hour(before, counts)
                    self._touched = False

    def _end_hour(self, hour: int, counts: bytes) -> None:
        self._ended[hour] = counts
        if len(self._ended) > _OWN_HOURS:
            del self._ended[min(self._ended)]

    def window(self, seconds: float, moment: float) -> Sheet:
        """All slots that reach into the last so many seconds, added up: up to one slot more than asked. A new sheet."""
        index = level_of(seconds)
        if not index:  # nothing need be closed for it: a scrape asks for this one of all deployments at once
            oldest = int((moment - seconds) // FINEST_S)
            total = self._levels[0].since(oldest)
            if self._number is not None and self._number >= oldest:
                merge_sheets(total, self._running)
            return total
        number = self._roll(moment)
        total = self._levels[index].since(int((moment - seconds) // LEVELS[index][0]))
        merge_sheets(total, self._newer(index, number))
        return total

    def _newer(self, index: int, number: int) -> Sheet:
        """What was counted since the last slot of a level was over. A new sheet."""
        total: Sheet = {}
        for finer, coarser in pairwise(self._levels[: index + 1]):
            inside = round(coarser.slot_s / finer.slot_s)
            number //= inside
            merge_sheets(total, finer.since(number * inside))
        merge_sheets(total, self._running)
        return total

    def give(self, hours: Mapping[int, Sheet], moment: float) -> None:
        """Adds hours of earlier processes. What is too old for every window, or of the future, is left out."""
        self._roll(moment)
        for level in self._levels[_HOURLY:]:
            self._give(level, hours, moment)

    def _give(self, level: Level, hours: Mapping[int, Sheet], moment: float) -> None:
        inside = round(level.slot_s / HOUR_S)
        running_hour, running = int(moment // HOUR_S), int(moment // level.slot_s)
        gathered: dict[int, Sheet] = {}
        for hour, sheet in hours.items():
            # A running slot will be the sum of its hours; the running hour will be added to what is kept of it.
            if hour <= running_hour and (inside == 1 or hour // inside < running):
                merge_sheets(gathered.setdefault(hour // inside, {}), sheet)
        for number, sheet in gathered.items():
            level.put(number, pack(sheet))
        level.expire(running)

    def merge(self, other: "Shelf") -> None:
        """Adds all that another shelf of the same clock has, up to the later of their running slots."""
        if other._number is None:
            return
        number = self._roll(other._number * FINEST_S)
        other._roll(number * FINEST_S)
        merge_sheets(self._running, other._running)
        for mine, theirs in zip(self._levels, other._levels, strict=True):
            for slot, packed in theirs.closed.items():
                mine.put(slot, packed)
        for hour, packed in other._ended.items():
            own = self._ended.get(hour)
            self._end_hour(hour, packed if own is None else pack(summed((own, packed))))
        self._touched = self._touched or other._touched

    def changed(self, moment: float) -> list[tuple[int, bytes]]:
        """The hours that changed since this was last asked, each whole: what was counted here, not what was given."""
        number = self._roll(moment)
        changed = list(self._ended.items())
        self._ended = {}
        if self._touched:
            sheet = self._newer(_HOURLY, number)
            if sheet:
                changed.append((int(number * FINEST_S // HOUR_S), pack(sheet)))
        self._touched = False
        return changed


def summed(slots: Iterable[bytes]) -> Sheet:
    """Packed slots together. A new sheet."""
    total: Sheet = {}
    for packed in slots:
        merge_sheets(total, unpack(packed))
    return total
