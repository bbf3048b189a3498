"""Counts in time slots: what leaves when, what is packed, what adds up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.metering.slots import MAX_UNPACKED, Level, Sheet, add, merge_sheets, pack, unpack

SHEETS = st.dictionaries(
    st.integers(0, 40), st.dictionaries(st.integers(-400, 700), st.integers(0, 1 << 50), max_size=20), max_size=10
)


@given(SHEETS)
def test_a_packed_sheet_comes_back_as_it_was(sheet: Sheet) -> None:
    assert unpack(pack(sheet)) == sheet


@given(st.binary(max_size=200))
def test_bytes_that_are_no_sheet_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no packed sheet"):
        unpack(b"x" + data)


@given(SHEETS, st.integers(0, 60), st.integers(0, 255))
def test_a_damaged_sheet_is_a_sheet_or_refused(sheet: Sheet, at: int, byte: int) -> None:
    data = bytearray(pack(sheet))
    data[at % len(data)] = byte
    try:
        found = unpack(bytes(data))
    except ValueError:
        return
    assert all(count >= 0 for counts in found.values() for count in counts.values())


def test_a_sheet_that_unpacks_without_end_is_refused() -> None:
    huge = {0: dict.fromkeys(range(MAX_UNPACKED // 16 + 1), 1)}
    with pytest.raises(ValueError, match="no packed sheet"):
        unpack(pack(huge))


def counted(level: Level, moment: float, seconds: float | None = None) -> int:
    return sum(level.merged(moment, seconds).get(1, {}).values())


def test_a_count_leaves_with_its_slot() -> None:
    level = Level(10.0, 4)
    add(level.running(5.0), 1, 7)
    assert [counted(level, moment) for moment in (5.0, 15.0, 39.9, 40.0, 1000.0)] == [1, 1, 1, 0, 0]


def test_a_part_of_a_level_is_the_slots_that_reach_into_it() -> None:
    level = Level(10.0, 12)
    for moment in range(5, 105, 10):
        add(level.running(float(moment)), 1, 7)
    assert [counted(level, 95.0, seconds) for seconds in (5.0, 20.0, 50.0, 1000.0)] == [1, 3, 6, 10]


@given(st.lists(st.tuples(st.floats(0, 500), st.integers(0, 5), st.booleans()), max_size=60))
def test_two_levels_add_up_to_one_that_saw_everything(samples: list[tuple[float, int, bool]]) -> None:
    both, one, other = Level(10.0, 8), Level(10.0, 8), Level(10.0, 8)
    for moment, bucket, first in sorted(samples):
        add(both.running(moment), 1, bucket)
        add((one if first else other).running(moment), 1, bucket)
    one.absorb(other)
    assert one.merged(500.0) == both.merged(500.0)


@given(st.lists(st.tuples(st.integers(-5, 60), SHEETS), max_size=8))
def test_slots_of_the_past_add_to_what_is_there(past: list[tuple[int, Sheet]]) -> None:
    level = Level(10.0, 5)
    add(level.running(505.0), 1, 7)
    expected: Sheet = {1: {7: 1}}
    for number, sheet in past:
        level.take(number, sheet, 505.0)
        if 45 < number <= 50:
            merge_sheets(expected, sheet)
    merged = level.merged(505.0)
    assert {quantity: counts for quantity, counts in merged.items() if counts} == {
        quantity: counts for quantity, counts in expected.items() if counts
    }


def test_a_moment_that_goes_back_counts_as_of_now() -> None:
    level = Level(10.0, 4)
    add(level.running(25.0), 1, 7)
    add(level.running(5.0), 1, 7)
    assert counted(level, 25.0, 5.0) == 2
