"""The two clocks: monotonic seconds for every measurement, wall time for labels only."""

import time
from datetime import UTC, datetime

# A step of the wall clock must never reach a measurement, so the two are never mixed.
monotonic = time.monotonic


def utc_now() -> datetime:
    """Wall time, for labels such as a record's `created`."""
    return datetime.now(UTC)


def iso_utc(moment: datetime) -> str:
    """`2026-11-30T12:00:00.000Z`: RFC 3339 with milliseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def wall_offset_s() -> float:
    """Wall-clock seconds since the epoch less monotonic seconds, now: what makes a label of a monotonic moment."""
    return time.time() - monotonic()
