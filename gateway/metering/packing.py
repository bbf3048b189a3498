"""Counts as bytes, a byte or two for each bucket. What is unpacked may come from a disk and is never trusted."""

import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from struct import Struct

from gateway.metering.sketch import Counts

# Counts by quantity; the quantities are numbered by the page.
Sheet = dict[int, Counts]

# What a damaged or hostile payload may unpack to at most: far more than any traffic has buckets.
MAX_UNPACKED = 1 << 18
# No measurement has a bucket beyond; a value made of one further out would overflow.
FURTHEST = 1000
# Counts stop here, so that sums of what was read always fit.
_MOST = 1 << 53

# Quantity, buckets, the first of them, and how the steps to the others and the counts are written.
_HEAD = Struct("<HHh2s")
_CODES = {code.encode(): array(code).itemsize for code in "BHIQ"}


def pack(sheet: Mapping[int, Mapping[int, int]]) -> bytes:
    """A closed slot: a thirtieth of the dictionaries it was."""
    raw = bytearray()
    for quantity in sorted(sheet):
        items = sorted(sheet[quantity].items())
        if not items:
            continue
        steps = _written([later - earlier for (earlier, _), (later, _) in pairwise(items)])
        counts = _written([min(count, _MOST) for _, count in items])
        raw += _HEAD.pack(quantity, len(items), items[0][0], (steps.typecode + counts.typecode).encode())
        raw += steps.tobytes() + counts.tobytes()
    return zlib.compress(raw, 1)


def _written(values: list[int]) -> "array[int]":
    """In the smallest whole numbers they fit in, little end first."""
    largest = max(values, default=0)
    code = "B" if largest < 1 << 8 else "H" if largest < 1 << 16 else "I" if largest < 1 << 32 else "Q"
    written = array(code, values)
    if sys.byteorder == "big":
        written.byteswap()
    return written


def unpack(packed: bytes) -> Sheet:
    """The sheet again. Raises ValueError for what `pack` did not write."""
    inflating = zlib.decompressobj()
    try:
        raw = inflating.decompress(packed, MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError("no packed sheet") from error
    if not inflating.eof or inflating.unused_data:
        raise ValueError("no packed sheet")
    sheet: Sheet = {}
    at = 0
    while at < len(raw):
        if at + _HEAD.size > len(raw):
            raise ValueError("no packed sheet")
        quantity, size, first, codes = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        steps, at = _read(raw, at, codes[:1], size - 1)
        counts, at = _read(raw, at, codes[1:], size)
        if quantity in sheet or not _sound(first, steps, counts):
            raise ValueError("no packed sheet")
        sheet[quantity] = dict(zip(accumulate(steps, initial=first), counts, strict=True))
    return sheet


def _read(raw: bytes, at: int, code: bytes, size: int) -> tuple["array[int]", int]:
    width = _CODES.get(code)
    if width is None or size < 0 or at + width * size > len(raw):
        raise ValueError("no packed sheet")
    numbers = array(code.decode())
    numbers.frombytes(raw[at : at + width * size])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers, at + width * size


def _sound(first: int, steps: Sequence[int], counts: Sequence[int]) -> bool:
    """Ascending, within what can be measured, and no count beyond the most."""
    return first >= -FURTHEST and first + sum(steps) <= FURTHEST and min(steps, default=1) > 0 and max(counts) <= _MOST
