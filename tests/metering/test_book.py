"""The speed book: what it learns from records, what it forgets, and what it never lets in."""

from dataclasses import replace
from math import exp, log
from random import Random

import pytest

from gateway.core.record import AttemptRecord, Chars, GenerationRecord, Speed, Timing, Tokens
from gateway.metering.book import SpeedBook


class Clock:
    """Monotonic seconds, moved by hand."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def finished(
    tps: float | None = None,
    ttft_ms: float | None = None,
    *,
    deployment: str | None = "p/m",
    tokens: Tokens = Tokens(),  # noqa: B008 - frozen
    chars: Chars = Chars(),  # noqa: B008 - frozen
    **speed: object,
) -> GenerationRecord:
    """A record with these measurements; speed quality ok, client clock and full weight unless said otherwise."""
    details = {"quality": "ok", "source": "client" if tps else None, "weight": 1.0 if tps else None, **speed}
    return GenerationRecord(
        id="r",
        created="2026-01-01T00:00:00.000Z",
        surface="chat.completions",
        stream=True,
        requested_model="m",
        outcome="ok",
        deployment=deployment,
        attempts=(AttemptRecord(deployment, "p", "m", "primary", "ok", 200, ttft_ms=ttft_ms),) if deployment else (),
        timing=Timing(ttft_ms=ttft_ms),
        tokens=tokens,
        chars=chars,
        speed=Speed(output_tps=tps, **details),  # type: ignore[arg-type]
    )


def fed(book: SpeedBook, clock: Clock, records: list[GenerationRecord], every_s: float = 1.0) -> None:
    for record in records:
        clock.now += every_s
        book.record(record)


def test_an_unknown_deployment_has_nothing_to_say() -> None:
    book = SpeedBook(Clock())
    assert book.evidence("x", 1000.0).speed is None
    assert book.view("x", 1000.0).samples == 0
    assert book.view("x", 1000.0).output_tps_p50 is None
    assert book.chars_per_token("x") == 4.0
    assert book.cold("x", 1000.0)
    assert book.predicted_ttft_s("x", 100) is None


def test_speed_is_a_mean_of_logarithms() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(tps) for tps in (50.0, 200.0) * 20])
    speed = book.evidence("p/m", clock.now).speed
    assert speed is not None
    assert exp(speed.mean) == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize(
    "record",
    [
        finished(5000.0, quality="short"),
        finished(5000.0, quality="burst"),
        finished(5000.0, quality="client_blocked"),
        finished(None, quality="estimate", estimated_tps=5000.0),
        finished(5000.0, deployment=None),
        finished(5000.0, weight=None),
        finished(0.0),
    ],
)
def test_only_sound_samples_enter_the_speed(record: GenerationRecord) -> None:
    clock = Clock()
    book = SpeedBook(clock)
    book.record(record)
    assert book.evidence("p/m", clock.now).speed is None
    assert book.view("p/m", clock.now).samples == 0


def test_a_rate_by_the_servers_clock_enters() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    book.record(finished(2000.0, quality="burst", source="server"))
    assert book.view("p/m", clock.now).samples == 1


def test_the_shortest_memory_with_enough_samples_speaks() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(100.0)] * 300)
    fed(book, clock, [finished(50.0)] * 40)
    evidence = book.evidence("p/m", clock.now)
    assert evidence.speed is not None
    assert evidence.baseline is not None
    assert exp(evidence.speed.mean) == pytest.approx(52, abs=4)
    assert exp(evidence.baseline.mean) > 85


def test_a_rare_sample_is_remembered_by_a_longer_memory_with_its_small_count() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(100.0)] * 3, every_s=60.0)
    speed = book.evidence("p/m", clock.now).speed
    assert speed is not None
    assert 2.5 < speed.count <= 3.0
    assert speed.error > 0.05


def test_one_sample_claims_no_certainty_and_an_old_one_nothing() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    book.record(finished(100.0))
    speed = book.evidence("p/m", clock.now).speed
    assert speed is not None
    assert speed.count == pytest.approx(1)
    assert speed.error == pytest.approx(0.25)
    assert book.evidence("p/m", clock.now + 1300).speed is None
    assert book.evidence("p/m", clock.now + 1300).baseline is not None


def test_the_standard_error_is_that_of_the_noise() -> None:
    clock, random = Clock(), Random(7)
    book = SpeedBook(clock)
    fed(book, clock, [finished(100 * exp(random.gauss(0, 0.25))) for _ in range(2000)])
    speed = book.evidence("p/m", clock.now).speed
    assert speed is not None
    assert speed.error == pytest.approx(0.25 / speed.count**0.5, rel=0.35)
    assert abs(speed.mean - log(100)) < 4 * speed.error


def test_weights_decide_how_much_a_sample_says() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(100.0), finished(400.0, weight=0.05)] * 20)
    speed = book.evidence("p/m", clock.now).speed
    assert speed is not None
    assert exp(speed.mean) == pytest.approx(107, abs=2)


def test_a_frozen_baseline_learns_nothing() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(100.0, 500.0)] * 50)
    before = book.evidence("p/m", clock.now).baseline
    book.freeze("p/m", True)
    fed(book, clock, [finished(20.0, 5000.0)] * 50)
    assert before is not None
    after = book.evidence("p/m", clock.now).baseline
    assert after is not None
    assert after.mean == pytest.approx(before.mean)
    assert book.predicted_ttft_s("p/m", 0) == pytest.approx(0.5)
    book.freeze("p/m", False)
    fed(book, clock, [finished(20.0, 5000.0)] * 50)
    thawed = book.evidence("p/m", clock.now).baseline
    assert thawed is not None
    assert thawed.mean < before.mean - 0.3


def test_a_frozen_deployment_may_be_one_never_heard_of() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    book.freeze("p/m", True)
    fed(book, clock, [finished(20.0)] * 5)
    assert book.evidence("p/m", clock.now).baseline is None
    assert book.evidence("p/m", clock.now).speed is not None


def prompt(tokens: int, cached: int = 0) -> Tokens:
    return Tokens(input=tokens, cached=cached, output=50, source="usage")


def test_first_tokens_are_expected_by_prompt_size() -> None:
    clock, random = Clock(), Random(3)
    book = SpeedBook(clock)
    sizes = [random.randrange(100, 8000) for _ in range(60)]
    fed(book, clock, [finished(100.0, 200 + 0.5 * size, tokens=prompt(size)) for size in sizes])
    assert book.predicted_ttft_s("p/m", 1000) == pytest.approx(0.7, rel=0.02)
    assert book.predicted_ttft_s("p/m", 20_000) == pytest.approx(10.2, rel=0.02)
    evidence = book.evidence("p/m", clock.now)
    assert evidence.ttft is not None
    assert evidence.ttft.mean == pytest.approx(0, abs=0.05)


def test_a_burst_of_long_prompts_is_no_sag() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(100.0, 200 + 0.5 * size, tokens=prompt(size)) for size in (100, 500, 2000, 900) * 10])
    fed(book, clock, [finished(100.0, 200 + 0.5 * 30_000, tokens=prompt(30_000))] * 10)
    evidence = book.evidence("p/m", clock.now)
    assert evidence.ttft is not None
    assert abs(evidence.ttft.mean) < 0.1


def test_cached_prompt_tokens_cost_no_time() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    for size in (500, 2000, 4000, 1000) * 5:
        fed(book, clock, [finished(100.0, 200 + 0.5 * size, tokens=prompt(size))])
        fed(book, clock, [finished(100.0, 200 + 0.5 * 500, tokens=prompt(size, size - 500))])
    assert book.predicted_ttft_s("p/m", 4000) == pytest.approx(2.2, rel=0.02)


def test_late_first_tokens_show_as_a_residual() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(100.0, 500.0)] * 60)
    book.freeze("p/m", True)
    fed(book, clock, [finished(100.0, 1500.0)] * 60)
    evidence = book.evidence("p/m", clock.now)
    assert evidence.ttft is not None
    assert evidence.ttft.mean == pytest.approx(log(3), abs=0.1)


@pytest.mark.parametrize("quality", ["hidden_reasoning", "whole_tool"])
def test_a_silent_think_or_a_held_back_call_is_no_slow_prefill(quality: str) -> None:
    clock = Clock()
    book = SpeedBook(clock)
    silent = finished(None, 9000.0, quality=quality)
    fed(book, clock, [finished(100.0, 500.0), silent] * 30)
    evidence = book.evidence("p/m", clock.now)
    assert evidence.ttft is not None
    assert evidence.ttft.mean == pytest.approx(0, abs=0.05)
    assert book.predicted_ttft_s("p/m", 0) == pytest.approx(0.5, rel=0.02)


def test_one_frozen_call_does_not_bend_the_expectation() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(100.0, 500.0)] * 30)
    book.record(finished(100.0, 120_000.0))
    assert book.predicted_ttft_s("p/m", 0) == pytest.approx(0.55, abs=0.02)


def test_a_cold_call_weighs_a_quarter_in_first_tokens() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(100.0, 500.0), finished(100.0, 1000.0, marks=("cold",))] * 40)
    assert book.predicted_ttft_s("p/m", 0) == pytest.approx(0.6, rel=0.03)


def test_a_deployment_is_cold_after_five_idle_minutes() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    book.record(finished(100.0))
    assert not book.cold("p/m", clock.now + 299)
    assert book.cold("p/m", clock.now + 301)


def test_a_failed_attempt_warms_its_deployment_too() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    attempt = AttemptRecord("q/m", "q", "m", "primary", "failed")
    record = finished(100.0)
    book.record(GenerationRecord("r", "", "chat.completions", True, "m", "ok", attempts=(attempt,)))
    book.record(record)
    assert not book.cold("q/m", clock.now)


def test_quantiles_are_of_the_last_five_minutes() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(10.0, 9000.0)] * 50)
    clock.now += 320
    fed(book, clock, [finished(float(tps), 10.0 * tps) for tps in range(1, 101)])
    view = book.view("p/m", clock.now)
    assert view.samples == 100
    assert view.output_tps_p50 == pytest.approx(50, rel=0.021)
    assert view.ttft_ms_p50 == pytest.approx(500, rel=0.021)
    assert view.ttft_ms_p95 == pytest.approx(950, rel=0.021)
    assert book.view("p/m", clock.now + 400).samples == 0


def test_characters_per_token_are_learnt_from_usage_alone() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    counted = Tokens(output=100, source="usage")
    fed(book, clock, [finished(100.0, tokens=counted, chars=Chars(content=250))] * 5)
    fed(book, clock, [finished(100.0, tokens=Tokens(output=9, source="estimate"), chars=Chars(content=900))])
    hidden = Tokens(output=100, reasoning=90, source="usage")
    fed(book, clock, [finished(None, quality="hidden_reasoning", tokens=hidden, chars=Chars(content=30))])
    assert book.chars_per_token("p/m") == pytest.approx(2.5)
    assert book.chars_per_token("other") == 4.0


def test_the_ratio_of_characters_to_tokens_follows_and_stays_sane() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    counted = Tokens(output=100, source="usage")
    fed(book, clock, [finished(100.0, tokens=counted, chars=Chars(content=200))] * 100)
    fed(book, clock, [finished(100.0, tokens=counted, chars=Chars(content=400))] * 200, every_s=60.0)
    assert book.chars_per_token("p/m") == pytest.approx(4.0, rel=0.03)
    fed(book, clock, [finished(100.0, tokens=counted, chars=Chars(content=1_000_000))] * 100, every_s=60.0)
    assert book.chars_per_token("p/m") == 12.0


def test_the_book_is_bounded_and_forgets_the_one_heard_of_longest_ago() -> None:
    clock = Clock()
    book = SpeedBook(clock, capacity=3)
    for name in ("a", "b", "c", "a", "d"):
        book.record(finished(100.0, deployment=name))
    assert [book.view(name, clock.now).samples for name in "abcd"] == [2, 0, 1, 1]


def test_what_was_served_by_another_lane_is_the_speed_of_that_lane() -> None:
    clock = Clock()
    served = {"fast": "slow", "none": None}
    book = SpeedBook(clock, booked_under=lambda record: served.get(record.deployment or "", record.deployment))
    fed(book, clock, [finished(100.0, 500.0, deployment="slow")] * 20)
    assert book.report("slow", clock.now).windows["5m"].samples == 20
    fed(book, clock, [finished(40.0, 900.0, deployment="fast", quality="ok")] * 10)
    fed(book, clock, [finished(40.0, 900.0, deployment="none", quality="ok")] * 10)
    fast, slow, none = (book.report(name, clock.now).windows["5m"] for name in ("fast", "slow", "none"))
    assert (fast.samples, fast.ttft_ms.count, fast.requests, fast.qualities["ok"]) == (0, 0, 10, 10)
    assert (slow.samples, slow.ttft_ms.count, slow.requests, slow.qualities["ok"]) == (30, 30, 20, 20)
    assert (none.samples, none.ttft_ms.count, none.requests, none.qualities["ok"]) == (0, 0, 10, 10)
    assert book.evidence("fast", clock.now).speed is None


def test_a_stream_left_before_its_kind_was_known_is_taken_for_the_usual_kind() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    fed(book, clock, [finished(None, 9000.0, quality="hidden_reasoning")] * 20 + [finished(100.0, 500.0)] * 5)
    fed(book, clock, [finished(None, 9000.0, quality="cancelled")] * 20)
    assert book.predicted_ttft_s("p/m", 0) == pytest.approx(0.5)
    late = book.evidence("p/m", clock.now).ttft
    assert late is not None
    assert late.mean == pytest.approx(0, abs=0.05)


def test_an_attempt_that_failed_after_its_first_token_teaches_its_ttft() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    failed = AttemptRecord("q/m", "q", "m", "primary", "failed", 200, "cut", ttft_ms=700.0, duration_ms=900.0)
    for _ in range(4):
        clock.now += 1
        record = finished(100.0, 300.0)
        book.record(replace(record, attempts=(failed, *record.attempts)))
    assert book.predicted_ttft_s("q/m", 0) == pytest.approx(0.7)
    assert book.predicted_ttft_s("p/m", 0) == pytest.approx(0.3)
    assert book.report("q/m", clock.now).windows["5m"].errors == 4


def test_our_own_full_pool_is_no_fault_of_the_provider() -> None:
    clock = Clock()
    book = SpeedBook(clock)
    ours = AttemptRecord("p/m", "p", "m", "primary", "failed", None, "overloaded")
    theirs = AttemptRecord("p/m", "p", "m", "primary", "failed", 503, "overloaded", pool_wait_ms=0.0)
    for attempt in (ours, theirs):
        book.record(replace(finished(), outcome="error", attempts=(attempt,)))
    window = book.report("p/m", clock.now).windows["5m"]
    assert (window.requests, window.errors) == (1, 1)
