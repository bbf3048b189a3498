"""What outlives the process: hours, baselines, lines and ratios come back; damage and wrong clocks are left out."""

from collections.abc import Mapping
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.ports import Hour
from gateway.core.record import GenerationRecord
from gateway.metering.book import SpeedBook
from tests.metering.histories import RECORDS, answered, unanswered
from tests.metering.test_book import Clock

HOUR = 3600
# The wall clock when the monotonic one stood at 0: in the middle of an hour.
WALL = 1_700_000.0 * HOUR + 1234.0

# What a state folder holds: of each hour the latest, and the latest of what was learnt.
Kept = dict[tuple[str, int], Hour]


def noted(book: SpeedBook, now: float, wall: float, kept: Kept) -> Mapping[str, bytes]:
    for hour in book.changed_hours(wall, now):
        kept[(hour.deployment_id, hour.hour)] = hour
    return book.learnt(wall, now)


def run(records: list[tuple[float, GenerationRecord]], kept: Kept) -> tuple[SpeedBook, Mapping[str, bytes]]:
    """A process that noted every ten minutes and at its end."""
    clock = Clock(0.0)
    book = SpeedBook(clock, offset_s=WALL)
    due = 600.0
    for moment, record in records:
        while due < moment:
            noted(book, due, WALL, kept)
            due += 600.0
        clock.now = moment
        book.record(record)
    return book, noted(book, clock.now, WALL, kept)


def again(kept: Kept, learnt: Mapping[str, bytes], at_s: float, *, boot_s: float = 50.0) -> tuple[SpeedBook, Clock]:
    """The next process, begun so long after the first on a monotonic clock of its own."""
    clock = Clock(boot_s)
    offset_s = WALL + at_s - boot_s
    book = SpeedBook(clock, offset_s=offset_s)
    book.restore(kept.values(), learnt, offset_s, clock.now)
    return book, clock


def test_a_restart_loses_nothing_of_the_day_and_the_week() -> None:
    kept: Kept = {}
    records = [(60.0 * minute, answered(50.0 + minute % 100, 200.0 + minute % 70)) for minute in range(3 * 24 * 60)]
    end = records[-1][0]
    first, learnt = run(records, kept)
    second, clock = again(kept, learnt, end + 1)
    for window in ("24h", "7d"):
        before, after = (
            book.report("p/m", now).windows[window] for book, now in ((first, end + 1), (second, clock.now))
        )
        assert after == before
        assert after.requests >= 24 * 60


def test_what_was_learnt_is_as_before() -> None:
    kept: Kept = {}
    sizes = [100 + 397 * (index % 20) for index in range(600)]
    records = [
        (5.0 * index, answered(100.0, 200 + 0.25 * size, tokens=(size, 0, 100), chars=300))
        for index, size in enumerate(sizes)
    ]
    first, learnt = run(records, kept)
    second, clock = again(kept, learnt, records[-1][0] + 30)
    before, after = first.report("p/m", records[-1][0] + 30), second.report("p/m", clock.now)
    assert after.baseline_tps == pytest.approx(before.baseline_tps)
    assert after.ttft_model.base_ms == pytest.approx(before.ttft_model.base_ms)
    assert after.ttft_model.prefill_tps == pytest.approx(before.ttft_model.prefill_tps)
    assert after.chars_per_token == pytest.approx(3.0, rel=0.01)
    assert after.estimate_ratio == pytest.approx(before.estimate_ratio)
    assert second.predicted_ttft_s("p/m", 8000) == pytest.approx(first.predicted_ttft_s("p/m", 8000))
    assert len(learnt["p/m"]) < 1000
    # The short memories begin anew: what was measured minutes ago is no evidence of now.
    assert second.evidence("p/m", clock.now).speed is None


def test_a_baseline_fades_while_nothing_runs() -> None:
    kept: Kept = {}
    _, learnt = run([(float(second), answered(100.0)) for second in range(600)], kept)
    soon, clock = again(kept, learnt, 900.0)
    baseline = soon.evidence("p/m", clock.now).baseline
    assert baseline is not None
    assert exp(baseline.mean) == pytest.approx(100)
    late, clock = again(kept, learnt, 5 * HOUR)
    assert late.evidence("p/m", clock.now).baseline is None


def test_several_processes_add_up() -> None:
    kept: list[Hour] = []
    for start in range(3):
        own: Kept = {}
        run([(60.0 * minute, answered()) for minute in range(start, 180, 3)], own)
        kept.extend(own.values())
    clock = Clock(50.0)
    book = SpeedBook(clock, offset_s=WALL + 3 * HOUR - 50.0)
    for hour in kept:  # as they may come: one by one
        book.restore([hour], {}, WALL + 3 * HOUR - 50.0, clock.now)
    assert book.window("p/m", 86_400, clock.now).requests == 180


def test_what_is_given_is_not_noted_again() -> None:
    kept: Kept = {}
    _, learnt = run([(60.0 * minute, answered()) for minute in range(100)], kept)
    second, clock = again(kept, learnt, 100 * 60.0)
    assert list(second.changed_hours(WALL + 100 * 60 - 50, clock.now)) == []
    clock.now += 10
    second.record(answered())
    (hour,) = second.changed_hours(WALL + 100 * 60 - 50, clock.now)
    alone = SpeedBook(Clock(50.0), offset_s=WALL + 100 * 60 - 50)
    alone.restore([hour], {}, WALL + 100 * 60 - 50, 50.0)
    assert alone.window("p/m", 86_400, 60.0).requests == 1
    assert second.window("p/m", 86_400, clock.now).requests == 101


def test_hours_that_are_too_old_or_of_the_future_are_left_out() -> None:
    kept: Kept = {}
    _, learnt = run([(60.0, answered())], kept)
    for days, held in ((1, 1), (6, 1), (8, 0), (400, 0), (-1, 0), (-400, 0)):
        book, clock = again(kept, learnt, 60.0 + days * 86_400)
        assert book.window("p/m", 604_800, clock.now).requests == held
        assert book.report("p/m", clock.now).effective_samples == 0.0
        book.record(answered())
        assert book.window("p/m", 604_800, clock.now).requests == held + 1


def test_a_wall_clock_that_was_put_right_by_hours_moves_the_hours_with_it() -> None:
    clock = Clock(0.0)
    book = SpeedBook(clock, offset_s=WALL)
    book.record(answered())
    (hour,) = book.changed_hours(WALL + 10 * HOUR, clock.now)
    assert hour.hour == 1_700_010


@given(
    st.lists(st.tuples(st.text(max_size=3), st.integers(-(1 << 62), 1 << 62), st.binary(max_size=60)), max_size=10),
    st.dictionaries(st.text(max_size=3), st.binary(max_size=80)),
    st.floats(-1e12, 1e12),
)
@settings(deadline=None)
def test_no_bytes_and_no_clock_make_it_fail(
    hours: list[tuple[str, int, bytes]], learnt: dict[str, bytes], offset_s: float
) -> None:
    clock = Clock(50.0)
    book = SpeedBook(clock, offset_s=WALL)
    book.restore([Hour(*hour) for hour in hours], learnt, offset_s, clock.now)
    book.restore([Hour(name, at, b"\x01" + payload) for name, at, payload in hours], {}, offset_s, clock.now)
    book.record(answered(deployment="x"))
    assert book.report("x", clock.now).windows["5m"].requests == 1


@given(st.lists(RECORDS, min_size=1, max_size=8), st.integers(0, 500), st.integers(0, 255), st.booleans())
@settings(deadline=None)
def test_damaged_payloads_are_read_or_left_out(
    records: list[GenerationRecord], at: int, byte: int, hit_learnt: bool
) -> None:
    kept: Kept = {}
    _, learnt = run([(float(index), record) for index, record in enumerate(records)], kept)
    hours = list(kept.values())

    def damaged(payload: bytes) -> bytes:
        changed = bytearray(payload)
        changed[at % len(changed)] = byte
        return bytes(changed)

    if hit_learnt:
        learnt = {name: damaged(payload) for name, payload in learnt.items()}
    else:
        hours = [Hour(hour.deployment_id, hour.hour, damaged(hour.payload)) for hour in hours]
    book, clock = SpeedBook(Clock(50.0), offset_s=WALL), Clock(50.0)
    book.restore(hours, learnt, WALL, clock.now)
    book.record(answered())
    report = book.report("p/m", clock.now)
    assert report.windows["5m"].requests == 1
    assert report.chars_per_token is not None


@pytest.mark.parametrize(
    "payload",
    [b"", b"null", b"[]", b"{}", b'{"version":2,"baseline":[0,0,0,0,0,0,0],"lines":{},"ratios":{}}', b'{"version":1}'],
)
def test_a_foreign_version_is_left_out(payload: bytes) -> None:
    clock = Clock(50.0)
    book = SpeedBook(clock, offset_s=WALL)
    book.restore([Hour("p/m", 1_700_000, b"\x02" + payload)], {"p/m": payload}, WALL, clock.now)
    assert book.evidence("p/m", clock.now).baseline is None
    assert book.window("p/m", 86_400, clock.now).requests == 0


def test_a_failed_request_is_remembered_as_one() -> None:
    kept: Kept = {}
    bad = unanswered("failed", "timeout_ttft", 20_000.0)
    _, learnt = run([(float(index), answered() if index % 2 else bad) for index in range(20)], kept)
    book, clock = again(kept, learnt, 25.0)
    window = book.report("p/m", clock.now).windows["24h"]
    assert (window.requests, window.errors, window.uptime) == (20, 10, 0.5)
    assert window.ttft_ms.p90 == pytest.approx(20_000, rel=0.021)
