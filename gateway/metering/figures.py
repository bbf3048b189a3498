"""A window's sheet as figures for people: quantiles, floor, uptime, cost."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.core.speed import PROMPT_SIZES, LoadBin, Quantiles, WindowReport
from gateway.metering import quantities as q
from gateway.metering.packing import Sheet
from gateway.metering.sketch import Counts, merge, quantiles

SHARES = (0.01, 0.10, 0.25, 0.50, 0.75, 0.90, 0.99)
MIN_UPTIME_REQUESTS = 10
_NO_COUNTS: Counts = {}


@dataclass(frozen=True, slots=True)
class Told:
    """A window as it was last told. `slots`: the finest one and the one it began with at that moment."""

    slots: tuple[int, int]
    booked: int
    report: WindowReport
    load: tuple[LoadBin, ...]

    def holds(self, slots: tuple[int, int], booked: int) -> bool:
        """Nothing came and nothing left; or in the same half minute a hundredth more, which moves no figure."""
        if booked == self.booked:
            return slots[1] == self.slots[1]
        return slots == self.slots and (booked - self.booked) * 100 <= self.report.requests


def told(sheet: Sheet, slots: tuple[int, int], booked: int) -> Told:
    """The figures of a window."""
    return Told(slots, booked, window_report(sheet), load_bins(sheet))


def window_report(sheet: Sheet) -> WindowReport:
    """What the slots of one window say together."""
    tally = sheet.get(q.TALLY, _NO_COUNTS)
    speeds = together(sheet, q.SPEED, len(q.LOADS) + 1)
    speed = spread(speeds)
    judged = tally.get(q.OK, 0) + tally.get(q.ERRORS, 0)
    return WindowReport(
        requests=judged + tally.get(q.RATE_LIMITED, 0),
        samples=speed.count,
        server_samples=tally.get(q.SERVER_SAMPLES, 0),
        errors=tally.get(q.ERRORS, 0),
        rate_limited=tally.get(q.RATE_LIMITED, 0),
        uptime=tally.get(q.OK, 0) / judged if judged >= MIN_UPTIME_REQUESTS else None,
        consistency=speed.p10 / speed.p50 if speed.p10 is not None and speed.p50 else None,
        ttft_ms=spread(together(sheet, q.TTFT, q.UNKNOWN_SIZE + 1), together(sheet, q.BOUND, q.UNKNOWN_SIZE + 1)),
        ttfa_ms=spread(sheet.get(q.TTFA, _NO_COUNTS)),
        output_tps=speed,
        chars_per_s=spread(sheet.get(q.CHARS, _NO_COUNTS)),
        max_gap_ms=spread(sheet.get(q.GAP, _NO_COUNTS)),
        ttft_ms_by_prompt=_by_prompt(sheet),
        qualities={
            word: tally[q.QUALITY + index] for index, word in enumerate(q.QUALITIES) if q.QUALITY + index in tally
        },
        cost_usd=tally.get(q.COST_NANO_USD, 0) / 1e9 if tally.get(q.PRICED) else None,
    )


def load_bins(sheet: Sheet) -> tuple[LoadBin, ...]:
    """Median speed by load; only bins that have samples."""
    bins: list[LoadBin] = []
    for index, name in enumerate(q.LOADS, start=1):
        counts = sheet.get(q.SPEED + index)
        if counts:
            (median,) = quantiles(counts, (0.5,))
            bins.append(LoadBin(name, median, sum(counts.values())))
    return tuple(bins)


def together(sheet: Sheet, first: int, parts: int) -> Counts:
    """A quantity that is counted in parts, as a whole."""
    return _merged(sheet[number] for number in range(first, first + parts) if number in sheet)


def spread(counts: Counts, bounds: Counts = _NO_COUNTS) -> Quantiles:
    """Percentiles of what was counted, lower bounds taken as such."""
    if not counts and not bounds:
        return Quantiles()
    return Quantiles(sum(counts.values()) + sum(bounds.values()), *quantiles(counts, SHARES, bounds))


def _by_prompt(sheet: Sheet) -> dict[str, Quantiles]:
    found: dict[str, Quantiles] = {}
    for index, name in enumerate(PROMPT_SIZES):
        counts, bounds = sheet.get(q.TTFT + index, _NO_COUNTS), sheet.get(q.BOUND + index, _NO_COUNTS)
        if counts or bounds:
            found[name] = spread(counts, bounds)
    return found


def _merged(parts: Iterable[Counts]) -> Counts:
    total: Counts = {}
    for counts in parts:
        merge(total, counts)
    return total
