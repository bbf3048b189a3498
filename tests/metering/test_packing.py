"""Packed counts: they come back as they were, and bytes that are none are refused."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.metering.packing import FURTHEST, Sheet, pack, unpack

SHEETS = st.dictionaries(
    st.integers(0, 40), st.dictionaries(st.integers(-400, 700), st.integers(0, 1 << 50), max_size=20), max_size=10
)


@given(SHEETS)
def test_a_packed_sheet_comes_back_as_it_was(sheet: Sheet) -> None:
    assert unpack(pack(sheet)) == {quantity: counts for quantity, counts in sheet.items() if counts}


@given(st.binary(max_size=200), st.booleans())
def test_bytes_that_are_no_sheet_are_refused_or_read_as_one_that_can_be_packed(data: bytes, wrapped: bool) -> None:
    try:
        found = unpack(zlib.compress(data) if wrapped else data)
    except ValueError:
        return
    assert unpack(pack(found)) == found


@given(SHEETS, st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_sheet_is_a_sheet_or_refused(sheet: Sheet, at: int, byte: int) -> None:
    raw = bytearray(zlib.decompress(pack(sheet)))
    if raw:
        raw[at % len(raw)] = byte
    try:
        found = unpack(zlib.compress(bytes(raw)))
    except ValueError:
        return
    assert all(abs(bucket) <= FURTHEST and count >= 0 for counts in found.values() for bucket, count in counts.items())


@pytest.mark.parametrize("cut", [1, 5, -1])
def test_a_sheet_that_is_cut_or_followed_by_more_is_refused(cut: int) -> None:
    packed = pack({1: {5: 9, 700: 1}, 2: {-3: 1}})
    with pytest.raises(ValueError, match="no packed sheet"):
        unpack(packed[:cut] if cut > 0 else packed + b"more")


def test_a_sheet_that_unpacks_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="no packed sheet"):
        unpack(zlib.compress(bytes(1 << 24)))


def test_a_count_beyond_all_measure_stops_growing() -> None:
    assert unpack(pack({0: {6: 1 << 70}})) == {0: {6: 1 << 53}}


def test_a_bucket_takes_a_byte_or_two() -> None:
    wide = {quantity: {bucket: 1 + bucket % 90 for bucket in range(100, 300)} for quantity in range(10)}
    assert len(pack(wide)) < 2 * 2000
