"""Counts in time slots: what leaves when, what adds up, which hours are told again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.metering.packing import Sheet, unpack
from gateway.metering.slots import LEVELS, Shelf, add, merge_sheets
from tests.metering.test_packing import SHEETS

HOUR = 3600
START = 1_700_000.0 * HOUR
WINDOWS = tuple(slot_s * kept for slot_s, kept in LEVELS)
MOMENTS = st.lists(st.tuples(st.floats(0, 8 * 86_400), st.integers(0, 5), st.booleans()), max_size=40)


def count(shelf: Shelf, after_s: float, bucket: int = 7) -> None:
    add(shelf.running(START + after_s), 1, bucket)


def held(shelf: Shelf, after_s: float, seconds: float) -> int:
    return sum(shelf.window(seconds, START + after_s).get(1, {}).values())


def test_no_count_is_lost_or_counted_twice_while_slots_age() -> None:
    shelf = Shelf()
    for second in range(0, 7 * 86_400, 97):
        count(shelf, second)
        if second % (97 * 400) == 0:
            assert held(shelf, second, WINDOWS[3]) == second // 97 + 1
    assert held(shelf, 7 * 86_400 - 1, WINDOWS[3]) == len(range(0, 7 * 86_400, 97))


@given(MOMENTS, st.floats(1, 604_800))
@settings(deadline=None)
def test_a_window_holds_all_it_should_and_a_slot_more_at_most(
    samples: list[tuple[float, int, bool]], seconds: float
) -> None:
    shelf, now = Shelf(), 8 * 86_400.0
    for moment, _, _ in sorted(samples):
        count(shelf, moment)
    slot_s = next(slot_s for slot_s, kept in LEVELS if seconds <= slot_s * kept)
    ages = [now - moment for moment, _, _ in samples]
    found = held(shelf, now, seconds)
    assert sum(age <= seconds for age in ages) <= found <= sum(age <= seconds + slot_s for age in ages)


@given(MOMENTS)
@settings(deadline=None)
def test_two_shelves_add_up_to_one_that_saw_everything(samples: list[tuple[float, int, bool]]) -> None:
    both, one, other = Shelf(), Shelf(), Shelf()
    for moment, bucket, first in sorted(samples):
        count(both, moment, bucket)
        count(one if first else other, moment, bucket)
    one.merge(other)
    now = START + 8 * 86_400
    for seconds in (*WINDOWS, 1800.0, 7200.0, 100_000.0):
        assert one.window(seconds, now) == both.window(seconds, now)
    assert sorted(one.changed(now))[-4:] == sorted(both.changed(now))[-4:]


@given(st.lists(st.tuples(st.integers(-300, 10), SHEETS), max_size=8), st.integers(0, 6 * HOUR))
@settings(deadline=None, max_examples=40)
def test_hours_of_the_past_add_to_what_is_there(past: list[tuple[int, Sheet]], after_s: int) -> None:
    shelf = Shelf()
    count(shelf, after_s)
    day: Sheet = {1: {7: 1}}
    week: Sheet = {1: {7: 1}}
    running = int((START + after_s) // HOUR)
    for back, sheet in past:
        shelf.give({running + back: sheet}, START + after_s)
        if -24 <= back <= 0:
            merge_sheets(day, sheet)
        if running // 6 - 28 <= (running + back) // 6 and back <= 0:
            merge_sheets(week, sheet)
    # A day later nothing of it has been lost on the way to longer slots.
    assert plain(shelf.window(WINDOWS[2], START + after_s)) == plain(day)
    assert plain(shelf.window(WINDOWS[3], START + after_s)) == plain(week)
    later = START + after_s + 86_400
    oldest = int(later // (6 * HOUR)) - 28
    kept: Sheet = {1: {7: 1}}
    for back, sheet in past:
        if back <= 0 and (running + back) // 6 >= oldest:
            merge_sheets(kept, sheet)
    assert plain(shelf.window(WINDOWS[3], later)) == plain(kept)


def plain(sheet: Sheet) -> Sheet:
    """Without counts of nothing, which come and go with the sums."""
    counted = {
        quantity: {bucket: count for bucket, count in counts.items() if count} for quantity, counts in sheet.items()
    }
    return {quantity: counts for quantity, counts in counted.items() if counts}


@given(MOMENTS, st.sampled_from(LEVELS))
@settings(deadline=None)
def test_a_sum_that_is_kept_up_to_date_is_the_sum_made_anew(
    samples: list[tuple[float, int, bool]], level: tuple[float, int]
) -> None:
    asked, unasked = Shelf(), Shelf()
    seconds = level[0] * level[1]
    for moment, bucket, ask in sorted(samples):
        count(asked, moment, bucket)
        count(unasked, moment, bucket)
        if ask:
            asked.window(seconds, START + moment)
    for now in (8 * 86_400, 9 * 86_400, 20 * 86_400):
        assert plain(asked.window(seconds, START + now)) == plain(unasked.window(seconds, START + now))


def test_an_hour_that_did_not_change_is_not_told_again() -> None:
    shelf = Shelf()
    count(shelf, 10)
    assert [number for number, _ in shelf.changed(START + 20)] == [1_700_000]
    assert shelf.changed(START + 30) == []
    count(shelf, 40)
    count(shelf, HOUR + 5)
    told = dict(shelf.changed(START + HOUR + 6))
    assert {number: unpack(counts) for number, counts in told.items()} == {
        1_700_000: {1: {7: 2}},
        1_700_001: {1: {7: 1}},
    }
    assert shelf.changed(START + 5 * HOUR) == []


def test_hours_that_were_given_are_not_told_as_our_own() -> None:
    shelf = Shelf()
    count(shelf, 10)
    shelf.give({1_700_000: {1: {7: 100}}, 1_699_999: {1: {7: 50}}}, START + 20)
    assert held(shelf, 20, WINDOWS[2]) == 151
    count(shelf, 30)
    count(shelf, HOUR + 10)
    told = {number: unpack(counts) for number, counts in shelf.changed(START + HOUR + 20)}
    assert told == {1_700_000: {1: {7: 2}}, 1_700_001: {1: {7: 1}}}
    assert held(shelf, HOUR + 20, WINDOWS[2]) == held(shelf, 7 * HOUR, WINDOWS[3]) == 153


def test_own_hours_that_nobody_asks_for_are_bounded() -> None:
    shelf = Shelf()
    for hour in range(50):
        count(shelf, hour * HOUR)
    assert [number for number, _ in shelf.changed(START + 49 * HOUR + 1)] == [1_700_045 + at for at in range(5)]


def test_a_moment_that_goes_back_counts_as_of_now() -> None:
    shelf = Shelf()
    count(shelf, 4000)
    count(shelf, 5)
    assert held(shelf, 4000, 1.0) == 2
