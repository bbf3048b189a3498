"""Durations, sizes and shares as people write them, and back."""

import math
import re

_DURATION = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_S = 3650 * 86400.0

_SIZE = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?) ?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)")
_BYTES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
LARGEST_BYTES = 2**50

_SHARE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?%")


def is_number(value: object) -> bool:
    """A finite number of sensible size. `true` is an int to Python and never one to a reader of YAML."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)


def duration_s(value: object) -> float:
    """Seconds of `500ms`, `5s`, `10m`, `24h`, `7d` or of a plain number of seconds. Raises ValueError."""
    seconds = _quantity(value, _DURATION, _SECONDS)
    if seconds is None or not 0 <= seconds <= LONGEST_S:
        raise ValueError("must be a duration from 0 to 3650d: 500ms, 5s, 10m, 24h, or a plain number of seconds")
    return seconds


def size_bytes(value: object) -> int:
    """Bytes of `32MB`, `1GiB` or of a plain number of bytes. MB is 10^6, MiB is 2^20. Raises ValueError."""
    size = _quantity(value, _SIZE, _BYTES)
    if size is None or not 1 <= size <= LARGEST_BYTES:
        raise ValueError("must be a size: 64KB, 32MB, 1GB, 512MiB, or a plain number of bytes (at least 1)")
    return round(size)


def share(value: object) -> float:
    """0.05 of `5%` or of a plain 0.05; from 0 to 1. Raises ValueError."""
    part: float | None = None
    if isinstance(value, str) and (match := _SHARE.fullmatch(value)):
        part = float(match[1]) / 100
    elif is_number(value) and isinstance(value, int | float):
        part = float(value)
    if part is None or not 0 <= part <= 1:
        raise ValueError("must be a share from 0% to 100%: 5% or 0.05")
    return part


def _quantity(value: object, pattern: re.Pattern[str], units: dict[str, float] | dict[str, int]) -> float | None:
    """The value in the base unit, None where it is neither a number nor a number with a known unit."""
    if isinstance(value, str) and (match := pattern.fullmatch(value)):
        return float(match[1]) * units[match[2]]
    if is_number(value) and isinstance(value, int | float):
        return float(value)
    return None
