"""What outlives the process, as bytes: an hour's counts, what was learnt of a deployment. Versioned, never trusted."""

from typing import Any

import orjson

from gateway.metering.decay import Decayed
from gateway.metering.first_token import FirstTokenLine
from gateway.metering.packing import Sheet, unpack
from gateway.metering.page import BASELINE_S, CLASSES, Page
from gateway.metering.ratio import FadingRatio

_HOUR_VERSION = b"\x01"
_LEARNT_VERSION = 1


def hour_payload(packed: bytes) -> bytes:
    """The packed counts of one hour."""
    return _HOUR_VERSION + packed


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
            "ratios": {name: ratio.state(offset_s) for name, ratio in page.ratios().items()},
        }
    )


def read_learnt(payload: bytes, offset_s: float, now: float) -> Page | None:
    """A page that has learnt this and counted nothing; None for what is damaged or of another version."""
    page = Page(offset_s)
    try:
        read = orjson.loads(payload)
        if not isinstance(read, dict) or read.get("version") != _LEARNT_VERSION:
            return None
        page.baseline.merge(Decayed.of_state(BASELINE_S, _numbers(read["baseline"]), offset_s, now))
        for kind in CLASSES:
            if kind in read["lines"]:
                page.lines[kind] = FirstTokenLine.of_state(_numbers(read["lines"][kind]), offset_s, now)
        for name, ratio in page.ratios().items():
            if name in read["ratios"]:
                ratio.merge(FadingRatio.of_state(_numbers(read["ratios"][name]), offset_s, now))
    except (ValueError, TypeError, KeyError):
        return None
    return page


def _numbers(value: Any) -> list[float]:
    if not isinstance(value, list) or not all(isinstance(item, int | float) for item in value):
        raise ValueError("no numbers")
    return [float(item) for item in value]
