"""One deployment's page: what is counted where, and that two pages add up to one that saw everything."""

from math import exp
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.record import GenerationRecord
from gateway.metering.book import SpeedBook
from gateway.metering.booking import book_answer, book_attempt, book_quality
from gateway.metering.packing import Sheet
from gateway.metering.page import Page
from gateway.metering.slots import LEVELS
from tests.metering.histories import RECORDS, answered, attempt, unanswered
from tests.metering.test_book import Clock

OFFSET_S = 1_700_000_000.0


def book(page: Page, record: GenerationRecord, now: float) -> None:
    for one in record.attempts:
        book_attempt(page, one, record, now, answered=one.outcome == "ok")
    if record.attempts[-1].outcome == "ok":
        book_quality(page, record, now)
        book_answer(page, record, now)


def counts(page: Page, now: float) -> list[Sheet]:
    return [page.shelf.window(slot_s * kept, now + OFFSET_S) for slot_s, kept in LEVELS]


HISTORIES = st.lists(st.tuples(st.floats(0, 4000), RECORDS, st.booleans()), max_size=25)


@given(HISTORIES)
@settings(deadline=None, max_examples=60)
def test_two_pages_count_what_one_that_saw_everything_counts(
    history: list[tuple[float, GenerationRecord, bool]],
) -> None:
    whole, one, other = Page(OFFSET_S), Page(OFFSET_S), Page(OFFSET_S)
    for moment, record, first in sorted(history, key=lambda entry: entry[0]):
        book(whole, record, moment)
        book(one if first else other, record, moment)
    one.merge(other)
    assert counts(one, 4000.0) == counts(whole, 4000.0)


@given(HISTORIES)
@settings(deadline=None, max_examples=60)
def test_the_decayed_sums_of_two_pages_are_those_of_one(history: list[tuple[float, GenerationRecord, bool]]) -> None:
    whole, one, other = Page(OFFSET_S), Page(OFFSET_S), Page(OFFSET_S)
    for moment, record, first in sorted(history, key=lambda entry: entry[0]):
        book(whole, record, moment)
        book(one if first else other, record, moment)
    one.merge(other)
    for mine, theirs in ((one.speed.rungs[2], whole.speed.rungs[2]), (one.baseline, whole.baseline)):
        assert mine.state(0.0) == pytest.approx(theirs.state(0.0), rel=1e-9, abs=1e-12)
        assert mine.mean_load == pytest.approx(theirs.mean_load)


@given(HISTORIES)
@settings(deadline=None, max_examples=30)
def test_the_order_of_two_pages_does_not_matter(history: list[tuple[float, GenerationRecord, bool]]) -> None:
    pages = [Page(OFFSET_S) for _ in range(4)]
    for moment, record, first in sorted(history, key=lambda entry: entry[0]):
        for page in (pages[0], pages[2]) if first else (pages[1], pages[3]):
            book(page, record, moment)
    pages[0].merge(pages[1])
    pages[3].merge(pages[2])
    assert counts(pages[0], 4000.0) == counts(pages[3], 4000.0)
    assert pages[0].baseline.state(0.0) == pytest.approx(pages[3].baseline.state(0.0), rel=1e-9, abs=1e-12)


def test_first_token_lines_add_up() -> None:
    whole, one, other = Page(), Page(), Page()
    for index in range(40):
        size = 100 + 211 * (index % 9)
        record = answered(ttft_ms=200 + 0.5 * size, tokens=(size, 0, 100))
        book(whole, record, float(index))
        book(one if index % 3 else other, record, float(index))
    one.merge(other)
    assert one.lines["plain"].predict(5000) == pytest.approx(2.7, rel=0.01)
    assert one.lines["plain"].state(0.0) == pytest.approx(whole.lines["plain"].state(0.0), rel=1e-9)


def report_of(*records: GenerationRecord):  # type: ignore[no-untyped-def]
    clock = Clock()
    made = SpeedBook(clock)
    for record in records:
        made.record(record)
    return made.report("p/m", clock.now)


def test_uptime_counts_what_the_provider_answers_for() -> None:
    good = [answered()] * 8
    bad = [unanswered("failed", code) for code in ("server_error", "cut")]
    neither = [unanswered("failed", "bad_request"), unanswered("cancelled", None, 100.0)]
    limited = [unanswered("failed", "rate_limited")] * 3
    window = report_of(*good, *bad, *neither, *limited).windows["5m"]
    assert (window.requests, window.errors, window.rate_limited) == (13, 2, 3)
    assert window.uptime == pytest.approx(0.8)
    assert report_of(*good, unanswered("failed", "cut")).windows["5m"].uptime is None


def test_the_floor_is_what_nine_of_ten_requests_reach() -> None:
    window = report_of(*(answered(float(tps)) for tps in range(1, 101))).windows["5m"]
    assert window.output_tps.p10 == pytest.approx(10, rel=0.021)
    assert window.output_tps.p50 == pytest.approx(50, rel=0.021)
    assert window.output_tps.p99 == pytest.approx(99, rel=0.021)
    assert window.consistency == pytest.approx(0.2, rel=0.05)
    assert window.samples == window.output_tps.count == 100


def test_only_sound_samples_are_speed_and_all_are_counted_by_quality() -> None:
    words = ("short", "burst", "hidden_reasoning", "whole_tool", "estimate", "client_blocked", "corrupt")
    window = report_of(answered(), *(answered(9999.0, quality=word) for word in words)).windows["5m"]
    assert window.samples == 1
    assert window.output_tps.p99 == pytest.approx(100, rel=0.021)
    assert dict(window.qualities) == dict.fromkeys(("ok", *words), 1)
    assert window.ttft_ms.count == 8


def test_a_spliced_stream_has_neither_speed_nor_first_token() -> None:
    window = report_of(answered(splice=True, quality="corrupt")).windows["5m"]
    assert (window.samples, window.ttft_ms.count, window.requests) == (0, 0, 1)


def test_a_rate_by_the_servers_clock_is_counted_apart_too() -> None:
    window = report_of(answered(2000.0, quality="burst", source="server"), answered()).windows["5m"]
    assert (window.samples, window.server_samples) == (2, 1)
    assert window.chars_per_s.count == 1


def test_speed_is_told_by_load() -> None:
    records = [answered(400.0 / load, in_flight=load) for load in (1, 2, 4, 8, 16, 17, 40)]
    bins = {entry.in_flight: entry for entry in report_of(*records).load}
    assert list(bins) == ["1", "2-4", "5-8", "9-16", "17+"]
    assert bins["1"].output_tps == pytest.approx(400, rel=0.021)
    assert [entry.samples for entry in bins.values()] == [1, 2, 1, 1, 2]


def test_first_tokens_are_told_by_prompt_size() -> None:
    sizes = (10, 1_999, 2_000, 31_999, 127_999, 128_000)
    window = report_of(*(answered(ttft_ms=float(size), tokens=(size, 0, 100)) for size in sizes)).windows["5m"]
    assert {name: spread.count for name, spread in window.ttft_ms_by_prompt.items()} == {
        "2k": 2, "8k": 1, "32k": 1, "128k": 1, "more": 1,
    }  # fmt: skip
    assert window.ttft_ms.count == 6


def test_waits_that_were_given_up_are_lower_bounds() -> None:
    late = [unanswered("failed", "timeout_ttft", 30_000.0)] * 4
    window = report_of(*[answered(ttft_ms=300.0)] * 6, *late).windows["5m"]
    assert window.ttft_ms.count == 10
    assert window.ttft_ms.p50 == pytest.approx(300, rel=0.021)
    assert window.ttft_ms.p90 == pytest.approx(30_000, rel=0.021)
    left = [unanswered("cancelled", None, 100.0)] * 4
    assert report_of(*[answered(ttft_ms=300.0)] * 6, *left).windows["5m"].ttft_ms.p90 == pytest.approx(300, rel=0.021)


@pytest.mark.parametrize(
    "record",
    [
        unanswered("failed", "connect"),
        unanswered("failed", "server_error", 5000.0),
        unanswered("failed", "timeout_ttft", 5000.0, stream=False),
    ],
    ids=["never sent", "failed before a token", "not streamed"],
)
def test_what_is_no_wait_for_a_token_is_no_bound(record: GenerationRecord) -> None:
    assert report_of(record).windows["5m"].ttft_ms.count == 0


def test_a_retry_books_each_attempt_under_its_own_deployment() -> None:
    clock = Clock()
    made = SpeedBook(clock)
    first = attempt("failed", "timeout_ttft", "q/m", duration_ms=2000.0, pool_wait_ms=0.0)
    second = attempt(ttft_ms=250.0, pool_wait_ms=0.0)
    made.record(answered(ttft_ms=250.0, attempts=(first, second)))
    other, here = (made.report(name, clock.now).windows["5m"] for name in ("q/m", "p/m"))
    assert (other.errors, other.ttft_ms.p50) == (1, pytest.approx(2000, rel=0.021))
    assert (here.errors, here.ttft_ms.p50) == (0, pytest.approx(250, rel=0.021))


def test_a_report_is_never_older_than_a_hundredth_of_its_requests() -> None:
    clock = Clock(1_000_000.0)
    made = SpeedBook(clock)
    for number in range(1, 1000):
        made.record(answered())
        told = made.report("p/m", clock.now).windows["24h"].requests
        assert number / 1.011 <= told <= number
        assert number > 99 or told == number
    clock.now += 31
    made.record(answered(chars=800))
    assert made.report("p/m", clock.now).windows["24h"].requests == 1000
    assert made.report("p/m", clock.now + 86_400 + 3600).windows["24h"].requests == 0


def test_cost_is_null_where_no_price_is_known_and_never_zero() -> None:
    assert report_of(answered()).windows["5m"].cost_usd is None
    assert report_of(answered(cost_usd=0.25), answered(cost_usd=0.5), answered()).windows["5m"].cost_usd == 0.75


def test_a_sample_leaves_each_window_when_its_time_is_over() -> None:
    clock = Clock(1_000_000.0)
    made = SpeedBook(clock)
    made.record(answered())
    begun = clock.now

    def held(after_s: float) -> list[int]:
        return [made.window("p/m", seconds, begun + after_s).samples for seconds in (300, 3600, 86_400, 604_800)]

    assert held(299) == [1, 1, 1, 1]
    assert held(331) == [0, 1, 1, 1]
    assert held(3599)[1:] == [1, 1, 1]
    assert held(3601 + 300)[1:] == [0, 1, 1]
    assert held(86_400 + 3601)[2:] == [0, 1]
    assert held(604_800 + 6 * 3600 + 1)[3:] == [0]


@given(st.floats(1, 604_800), st.floats(0, 700_000))
def test_a_window_is_longer_than_it_says_by_one_slot_at_most(seconds: float, age_s: float) -> None:
    page = Page()
    book(page, answered(), 1000.0)
    slot_s = next(slot_s for slot_s, kept in LEVELS if seconds <= slot_s * kept)
    held = bool(page.shelf.window(seconds, 1000.0 + age_s))
    if age_s <= seconds:
        assert held
    elif age_s > seconds + slot_s:
        assert not held


def test_estimates_are_held_against_what_was_billed() -> None:
    exact = report_of(*[answered(chars=400, tokens=(10, 0, 100))] * 5)
    assert (exact.chars_per_token, exact.estimate_ratio) == (pytest.approx(4), pytest.approx(1))
    first = report_of(answered(chars=200, tokens=(10, 0, 100)))
    assert (first.chars_per_token, first.estimate_ratio) == (pytest.approx(2), pytest.approx(0.5))
    assert report_of(answered(quality="hidden_reasoning")).estimate_ratio is None


def test_the_servers_clock_is_held_against_ours() -> None:
    report = report_of(*[answered(server_clock={"decode_ratio": 0.9, "ttft_difference_ms": 12.0})] * 3)
    assert report.clock_decode_ratio == pytest.approx(0.9)
    assert report.clock_ttft_difference_ms == pytest.approx(12.0)
    assert report_of(answered()).clock_decode_ratio is None


def test_prefill_speed_falls_out_of_the_line() -> None:
    sizes = [100 + 397 * (index % 20) for index in range(60)]
    model = report_of(*(answered(ttft_ms=200 + 0.25 * size, tokens=(size, 0, 100)) for size in sizes)).ttft_model
    assert model.base_ms == pytest.approx(200, rel=0.01)
    assert model.per_1k_tokens_ms == pytest.approx(250, rel=0.01)
    assert model.prefill_tps == pytest.approx(4000, rel=0.01)


def test_a_slope_that_noise_alone_would_show_is_none() -> None:
    seen = 0
    for seed in range(40):
        random = Random(seed)
        sizes = [random.randrange(20, 60) for _ in range(60)]
        waits = [200 * exp(random.gauss(0, 0.3)) for _ in sizes]
        records = [answered(ttft_ms=wait, tokens=(size, 0, 100)) for size, wait in zip(sizes, waits, strict=True)]
        model = report_of(*records).ttft_model
        seen += model.per_1k_tokens_ms is not None
        assert model.base_ms is not None
    assert seen <= 1


def test_a_slope_is_found_in_noise_where_there_is_one() -> None:
    for seed in range(20):
        random = Random(seed)
        sizes = [int(exp(random.uniform(4, 10))) for _ in range(100)]
        waits = [(200 + 0.2 * size) * exp(random.gauss(0, 0.25)) for size in sizes]
        records = [answered(ttft_ms=wait, tokens=(size, 0, 100)) for size, wait in zip(sizes, waits, strict=True)]
        assert report_of(*records).ttft_model.per_1k_tokens_ms == pytest.approx(200, rel=0.35)
