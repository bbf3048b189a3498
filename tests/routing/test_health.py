"""The health book: states joined from breaker, sag detector and the administrator's switch."""

import pytest

from gateway.core.ports import HealthBook, Listener
from gateway.core.types import BreakerPolicy, Deployment, Estimate, Health, SpeedEvidence
from gateway.routing.filters import TRIAL_IN_FLIGHT
from gateway.routing.health import Health as Keeper
from tests.routing.fleet import Now, ScriptedEvidence, deployment, keeper, record

A, SISTER, B = deployment("a/one"), deployment("a/two"), deployment("b/one")
POLICY = BreakerPolicy(failures=2)


def fail(book: Keeper, which: Deployment, now: float, *, times: int = 2, code: str = "server_error") -> None:
    for index in range(times):
        book.failed(which, code, f"{which.id}-{now}-{index}", None, now)


def test_it_is_a_health_book_and_a_listener() -> None:
    book: HealthBook = keeper([A])
    listener: Listener = keeper([A])
    listener.record(record("a/one", 50.0))
    assert book.health(A, 0.0) == Health("unmeasured")


def test_the_states_of_an_outage_in_turn_and_what_is_told_of_them() -> None:
    told: list[tuple[str, str, str]] = []
    book = keeper([A, B], breaker=POLICY, tell=lambda *news: told.append(news))
    fail(book, A, 100.0)
    assert book.health(A, 105.0) == Health("cooling", "server_error", 110.0)
    assert book.health(B, 105.0) == Health("unmeasured")
    assert book.health(A, 110.0) == Health("probing", "trial_due", 110.0)
    book.admit(A, 111.0)
    assert book.health(A, 111.0) == Health("probing", TRIAL_IN_FLIGHT, 110.0)
    book.succeeded(A, 112.0)
    assert book.health(A, 112.0) == Health("unmeasured")
    assert told == [
        ("a/one", "cooling", "server_error"),
        ("a/one", "probing", TRIAL_IN_FLIGHT),
        ("a/one", "unmeasured", "recovered"),
    ]


def test_a_client_that_leaves_a_trial_frees_it() -> None:
    book = keeper([A], breaker=POLICY)
    fail(book, A, 100.0)
    book.admit(A, 110.0)
    book.released(A, 111.0)
    assert book.health(A, 111.0).reason == "trial_due"


@pytest.mark.parametrize("code", ["bad_request", "content_filter", "context_length", "internal", "no such code"])
def test_what_is_not_the_deployments_fault_is_never_counted(code: str) -> None:
    book = keeper([A], breaker=POLICY)
    fail(book, A, 100.0, times=20, code=code)
    assert book.health(A, 100.0).state == "unmeasured"


@pytest.mark.parametrize("code", ["auth", "quota", "rate_limited"])
def test_a_callers_own_key_that_is_refused_cools_nothing_for_others(code: str) -> None:
    lane = deployment("lane/m", callers_key=True)
    book = keeper([lane], breaker=POLICY)
    fail(book, lane, 100.0, times=20, code=code)
    assert book.health(lane, 100.0).state == "unmeasured"


def test_a_provider_whose_deployments_all_fail_is_cooled_as_a_whole() -> None:
    third = deployment("a/three")
    book = keeper([A, SISTER, third, B], breaker=POLICY)
    fail(book, A, 100.0)
    assert book.health(third, 101.0).state == "unmeasured"
    fail(book, SISTER, 102.0)
    assert book.health(third, 103.0) == Health("cooling", "provider", 112.0)
    assert book.health(B, 103.0).state == "unmeasured"
    assert book.health(third, 112.0).state == "unmeasured"


def test_a_provider_with_a_deployment_that_answers_is_not_cooled_as_a_whole() -> None:
    third = deployment("a/three")
    book = keeper([A, SISTER, third], breaker=POLICY)
    fail(book, A, 100.0)
    fail(book, SISTER, 102.0, times=1)
    book.succeeded(third, 103.0)
    fail(book, SISTER, 104.0, times=1)
    assert book.health(SISTER, 105.0).state == "cooling"
    assert book.health(third, 105.0).state == "unmeasured"


def test_a_success_before_the_failures_does_not_keep_a_provider_from_being_cooled() -> None:
    third = deployment("a/three")
    book = keeper([A, SISTER, third], breaker=POLICY)
    for entry in (A, SISTER, third):
        book.succeeded(entry, 90.0)
    fail(book, A, 100.0)
    fail(book, SISTER, 102.0)
    assert book.health(third, 103.0).reason == "provider"


def test_one_success_brings_a_cooled_provider_back() -> None:
    third = deployment("a/three")
    book = keeper([A, SISTER, third], breaker=POLICY)
    fail(book, A, 100.0)
    fail(book, SISTER, 102.0)
    book.admit(third, 103.0)
    book.succeeded(third, 104.0)
    assert book.health(third, 104.0).state == "unmeasured"
    assert book.health(A, 104.0).state == "cooling"


def test_a_disabled_deployment_stays_so_until_it_is_enabled() -> None:
    told: list[tuple[str, str, str]] = []
    book = keeper([A], tell=lambda *news: told.append(news))
    book.disable("a/one")
    book.succeeded(A, 1.0)
    assert book.health(A, 1.0) == Health("disabled", "admin")
    book.enable("a/one")
    assert book.health(A, 1.0) == Health("unmeasured")
    assert told == [("a/one", "disabled", "admin"), ("a/one", "unmeasured", "admin")]
    with pytest.raises(KeyError):
        book.disable("nobody/m")


def test_a_reset_forgets_the_failures() -> None:
    book = keeper([A], breaker=POLICY, clock=Now(101.0))
    fail(book, A, 100.0)
    book.reset("a/one")
    assert book.health(A, 101.0) == Health("unmeasured")
    fail(book, A, 101.0, times=1)
    assert book.health(A, 101.0) == Health("unmeasured")


def test_a_deployment_that_came_later_is_taken_up_as_unmeasured() -> None:
    book = keeper([A], breaker=POLICY)
    assert book.health(B, 100.0) == Health("unmeasured")
    fail(book, B, 100.0)
    assert book.health(B, 100.0).state == "cooling"


def test_a_request_that_reached_no_deployment_is_ignored() -> None:
    evidence = ScriptedEvidence()
    evidence.says[""] = SpeedEvidence(Estimate(0.0, 0.0, 100.0))
    book = keeper([A], evidence=evidence)
    book.record(record("", None))
    assert book.health(A, 0.0) == Health("unmeasured")


def test_cooling_hides_a_sag_and_gives_it_back() -> None:
    evidence, now = ScriptedEvidence(), Now(50.0)
    evidence.says["a/one"] = SpeedEvidence(ttft=Estimate(2.0, 0.1, 50.0))
    book = keeper([A], breaker=POLICY, evidence=evidence, clock=now)
    book.record(record("a/one", None))
    assert book.health(A, 50.0) == Health("sagging", "ttft", 80.0)
    fail(book, A, 60.0)
    assert book.health(A, 60.0).state == "cooling"
    book.admit(A, 70.0)
    book.succeeded(A, 71.0)
    assert book.health(A, 71.0).state == "sagging"
