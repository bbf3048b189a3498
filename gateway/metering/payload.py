"""What outlives the process, as bytes: an hour's counts, what was learnt of a deployment. Versioned, never trusted."""

from typing import Any

import orjson

from gateway.metering.decay import Decayed
from gateway.metering.first_token import FirstTokenLine
from gateway.metering.page import BASELINE_S, CLASSES, Page, ratios_of
from gateway.metering.ratio import FadingRatio
from gateway.metering.slots import Sheet, pack, unpack

_HOUR_VERSION = b"\x01"
_LEARNT_VERSION = 1


def hour_payload(sheet: Sheet) -> bytes:
    """The counts of one hour."""
    return _HOUR_VERSION + pack(sheet)


def read_hour(payload: bytes) -> Sheet | None:
    """The counts again; None for what is damaged or of another version."""
    if payload[:1] != _HOUR_VERSION:
        return None
    try:
        return unpack(payload[1:])
    except ValueError:
        return None


def learnt_payload(page: Page, offset_s: float) -> bytes:
    """Baseline, TTFT lines and ratios, their moments on the wall clock."""
    return orjson.dumps(
        {
            "version": _LEARNT_VERSION,
            "baseline": page.baseline.state(offset_s),
            "lines": {kind: line.state(offset_s) for kind, line in page.lines.items()},
            "ratios": {name: ratio.state() for name, ratio in ratios_of(page).items()},
        }
    )


def read_learnt(page: Page, payload: bytes, offset_s: float, now: float) -> None:
    """Adds it to a page; what is damaged or of another version is left out."""
    try:
        read = orjson.loads(payload)
        if not isinstance(read, dict) or read.get("version") != _LEARNT_VERSION:
            return
        baseline = Decayed.of_state(BASELINE_S, _numbers(read["baseline"]), offset_s, now)
        lines = {
            kind: FirstTokenLine.of_state(_numbers(read["lines"][kind]), offset_s, now)
            for kind in CLASSES
            if kind in read["lines"]
        }
        ratios = {
            name: FadingRatio.of_state(_numbers(read["ratios"][name]))
            for name in ratios_of(page)
            if name in read["ratios"]
        }
    except (ValueError, TypeError, KeyError):
        return
    page.baseline.merge(baseline)
    for kind, line in lines.items():
        page.lines.setdefault(kind, FirstTokenLine()).merge(line)
    for name, ratio in ratios_of(page).items():
        if name in ratios:
            ratio.merge(ratios[name])


def _numbers(value: Any) -> list[float]:
    if not isinstance(value, list) or not all(isinstance(item, int | float) for item in value):
        raise ValueError("no numbers")
    return [float(item) for item in value]
