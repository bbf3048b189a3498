"""The circuit breaker: when it opens, for how long, and how it closes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.types import BreakerPolicy
from gateway.routing.breaker import MAX_RETRY_AFTER_S, SHORT_REST_S, Breaker, FailureWindow
from tests.routing.fleet import PATIENT

POLICY = BreakerPolicy(failures=3, ratio=0.5, min_requests=10, window_s=60.0, cooldown_s=10.0, max_cooldown_s=35.0)


def failing(times: int = 3, *, at: float = 100.0) -> Breaker:
    breaker = Breaker(POLICY)
    for index in range(times):
        breaker.failed("server_error", f"request-{index}", None, at)
    return breaker


def fail(breaker: Breaker, now: float, *, code: str = "server_error", retry_after_s: float | None = None) -> None:
    breaker.failed(code, f"at-{now}", retry_after_s, now)


def test_it_opens_at_the_set_number_of_failures_in_a_row() -> None:
    assert failing(2).cooling_until(100.0) is None
    assert failing(3).cooling_until(100.0) == 110.0
    assert failing(3).reason() == "server_error"


def test_a_success_between_breaks_the_row() -> None:
    breaker = failing(2)
    breaker.succeeded(100.0)
    fail(breaker, 101.0)
    assert not breaker.is_open


def test_one_poisonous_request_tried_again_and_again_does_not_open_it() -> None:
    breaker = Breaker(POLICY)
    for _ in range(50):
        breaker.failed("server_error", "poison", None, 100.0)
    assert not breaker.is_open
    breaker.failed("server_error", "another", None, 101.0)
    assert breaker.is_open


def test_the_ratio_opens_it_once_there_are_enough_requests() -> None:
    breaker = Breaker(POLICY)
    for at in range(9):
        breaker.succeeded(float(at)) if at % 2 else fail(breaker, float(at))
    assert not breaker.is_open
    fail(breaker, 9.0)
    assert breaker.is_open


def test_failures_older_than_the_window_do_not_count_toward_the_ratio() -> None:
    breaker = Breaker(POLICY)
    for at in range(10):
        breaker.succeeded(float(at)) if at % 2 or at > 7 else fail(breaker, float(at))
    assert not breaker.is_open
    fail(breaker, 90.0)
    fail(breaker, 91.0)
    assert not breaker.is_open


def test_after_the_cooldown_one_trial_goes_and_its_success_closes() -> None:
    breaker = failing()
    assert breaker.cooling_until(109.9) == 110.0
    assert breaker.cooling_until(110.0) is None
    assert not breaker.trial_in_flight(110.0)
    breaker.admit(110.0)
    assert breaker.trial_in_flight(111.0)
    breaker.succeeded(112.0)
    assert not breaker.is_open
    fail(breaker, 113.0)
    assert not breaker.is_open


def test_each_failed_trial_doubles_the_cooldown_up_to_the_cap() -> None:
    breaker, now, cooldowns = failing(), 110.0, []
    for _ in range(4):
        breaker.admit(now)
        fail(breaker, now)
        until = breaker.cooling_until(now)
        assert until is not None
        cooldowns.append(until - now)
        now = until
    assert cooldowns == [20.0, 35.0, 35.0, 35.0]


def test_once_closed_it_starts_afresh() -> None:
    breaker = failing(6)
    breaker.admit(110.0)
    fail(breaker, 110.0)
    breaker.admit(130.0)
    breaker.succeeded(130.0)
    for at in (131.0, 132.0, 133.0):
        breaker.succeeded(at - 0.5)
        fail(breaker, at)
    assert not breaker.is_open  # the failures of before would make the ratio
    for at in (134.0, 135.0):
        fail(breaker, at)
    assert breaker.cooling_until(135.0) == 145.0


def test_a_thousand_failed_trials_are_no_overflow() -> None:
    breaker, now = failing(), 110.0
    for _ in range(1100):
        fail(breaker, now)
        now = breaker.cooling_until(now) or now
    assert breaker.is_open


def test_a_released_trial_lets_the_next_one_go() -> None:
    breaker = failing()
    breaker.admit(110.0)
    breaker.released()
    assert not breaker.trial_in_flight(110.0)
    assert breaker.is_open


def test_a_trial_whose_end_was_never_told_is_given_up() -> None:
    breaker = failing()
    breaker.admit(110.0)
    assert breaker.trial_in_flight(144.9)
    assert not breaker.trial_in_flight(145.0)


def test_a_stream_from_before_that_ends_well_does_not_close_it() -> None:
    breaker = failing()
    breaker.succeeded(105.0)
    assert breaker.cooling_until(105.0) == 110.0


def test_a_last_resort_that_succeeds_closes_it_at_once() -> None:
    breaker = failing()
    breaker.admit(105.0)
    breaker.succeeded(106.0)
    assert not breaker.is_open


def test_a_last_resort_that_fails_leaves_the_deadline_where_it_is() -> None:
    breaker = failing()
    breaker.admit(105.0)
    fail(breaker, 106.0)
    assert breaker.cooling_until(106.0) == 110.0


@pytest.mark.parametrize("code", ["auth", "quota"])
def test_a_refused_credential_takes_the_longest_cooldown_at_once(code: str) -> None:
    breaker = Breaker(POLICY)
    fail(breaker, 100.0, code=code)
    assert breaker.cooling_until(100.0) == 135.0
    assert breaker.reason() == code


@pytest.mark.parametrize(("told", "rests"), [(7.5, 7.5), (1e9, MAX_RETRY_AFTER_S)])
def test_a_rate_limit_rests_for_as_long_as_it_was_told_and_needs_no_trial(told: float, rests: float) -> None:
    breaker = Breaker(POLICY)
    fail(breaker, 100.0, code="rate_limited", retry_after_s=told)
    assert breaker.cooling_until(100.0) == 100.0 + rests
    assert breaker.reason() == "rate_limited"
    assert breaker.cooling_until(100.0 + rests) is None
    assert not breaker.is_open


def test_rate_limits_that_say_for_how_long_never_open_it() -> None:
    breaker = Breaker(POLICY)
    for at in range(50):
        fail(breaker, float(at), code="rate_limited", retry_after_s=0.5)
    assert not breaker.is_open


@pytest.mark.parametrize("told", [None, 0.0, -3.0, float("nan"), float("inf")])
def test_a_rate_limit_that_does_not_say_is_a_failure_with_a_short_rest(told: float | None) -> None:
    breaker = Breaker(POLICY)
    fail(breaker, 100.0, code="rate_limited", retry_after_s=told)
    assert breaker.cooling_until(100.0) == 100.0 + SHORT_REST_S
    fail(breaker, 101.0, code="rate_limited", retry_after_s=told)
    fail(breaker, 102.0, code="rate_limited", retry_after_s=told)
    assert breaker.is_open


def test_a_success_does_not_end_a_rate_limits_rest() -> None:
    breaker = Breaker(POLICY)
    fail(breaker, 100.0, code="rate_limited", retry_after_s=30.0)
    breaker.succeeded(101.0)
    assert breaker.cooling_until(101.0) == 130.0


def test_a_shorter_retry_after_does_not_shorten_the_rest() -> None:
    breaker = Breaker(POLICY)
    fail(breaker, 100.0, code="rate_limited", retry_after_s=60.0)
    fail(breaker, 101.0, code="rate_limited", retry_after_s=5.0)
    fail(breaker, 102.0, code="rate_limited")
    assert breaker.cooling_until(102.0) == 160.0


def test_a_request_that_failed_before_the_last_success_is_no_second_witness() -> None:
    breaker = Breaker(POLICY)
    fail(breaker, 100.0)
    breaker.succeeded(101.0)
    for _ in range(7):
        breaker.failed("server_error", "poison", None, 102.0)
    assert not breaker.is_open


STEPS = st.tuples(
    st.floats(0, 30),
    st.sampled_from(["failed", "admit", "released"]),
    st.sampled_from(["server_error", "rate_limited", "auth", "connect"]),
    st.none() | st.floats(-1, 1000),
    st.integers(0, 4),
)


@PATIENT
@given(st.lists(STEPS, max_size=60))
def test_without_a_success_the_deadline_only_moves_later(
    steps: list[tuple[float, str, str, float | None, int]],
) -> None:
    breaker, now, deadline = Breaker(POLICY), 1000.0, 0.0
    for wait, event, code, retry_after_s, request in steps:
        now += wait
        if event == "failed":
            breaker.failed(code, f"request-{request}", retry_after_s, now)
        elif event == "admit":
            breaker.admit(now)
        else:
            breaker.released()
        latest = max(breaker.until or 0.0, breaker.rest_until or 0.0)
        assert latest >= deadline
        assert latest <= now + MAX_RETRY_AFTER_S
        deadline = latest


@PATIENT
@given(st.lists(st.tuples(st.floats(0, 20), st.booleans()), max_size=80))
def test_the_window_counts_what_happened_within_it(events: list[tuple[float, bool]]) -> None:
    window, now, seen = FailureWindow(60.0), 1000.0, []
    for wait, failure in events:
        now += wait
        window.add(now, failure=failure)
        seen.append((int(now / 6.0), failure))
        within = [failed for slot, failed in seen if slot > int(now / 6.0) - 10]
        assert window.counts(now) == (len(within), sum(within))


def test_a_clock_that_steps_back_empties_nothing() -> None:
    window = FailureWindow(60.0)
    window.add(1000.0, failure=True)
    window.add(10.0, failure=True)
    assert window.counts(5.0) == (2, 2)
