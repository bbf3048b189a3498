"""When an upstream says to come back: `retry-after-ms`, `retry-after` in seconds or as an HTTP date; else None."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# No provider's word keeps a deployment out for longer.
CAP_S = 300.0


def retry_after_s(headers: Sequence[tuple[bytes, bytes]], now: datetime) -> float | None:
    """Seconds from `now`, 0 to 300; None where no header says or the value makes no sense."""
    found = {name: value.decode("latin-1").strip() for name, value in headers if name.startswith(b"retry-after")}
    milliseconds = _number(found.get(b"retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000.0, CAP_S)
    text = found.get(b"retry-after")
    seconds = _number(text)
    if seconds is None:
        seconds = _until_date(text, now)
    return None if seconds is None else min(seconds, CAP_S)


def _number(text: str | None) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _until_date(text: str | None, now: datetime) -> float | None:
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
