"""Who is charged for a failure: the deployment, or nobody where the request itself may be the cause."""

from collections.abc import Iterable

import pytest

from gateway.core.errors import AttemptError
from gateway.core.types import Candidate, Deployment, Health, Provider, Target, Timeouts
from gateway.dispatch.verdicts import Verdicts


class Ledger:
    """A health book that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def health(self, deployment: Deployment, now: float) -> Health:
        return Health("ok")

    def admit(self, deployment: Deployment, now: float) -> None: ...

    def failed(
        self, deployment: Deployment, code: str, request_id: str, retry_after_s: float | None, now: float
    ) -> None:
        self.told.append(f"{deployment.id} {code}")

    def succeeded(self, deployment: Deployment, now: float) -> None:
        self.told.append(f"{deployment.id} succeeded")

    def released(self, deployment: Deployment, now: float) -> None:
        self.told.append(f"{deployment.id} released")


def place(name: str) -> Deployment:
    return Deployment(name, Provider(name, f"http://{name}"), "m", "m")


A, B, C = (place(name) for name in "abc")


def candidate(deployment: Deployment, reason: str = "order") -> Candidate:
    return Candidate(deployment, Target("m", (A, B, C), "order", Timeouts()), reason)


def after(failures: Iterable[tuple[Deployment, str]]) -> tuple[Verdicts, Ledger]:
    ledger = Ledger()
    verdicts = Verdicts(ledger, "r1")
    for deployment, code in failures:
        verdicts.failed(deployment, AttemptError(code), 0.0)
    return verdicts, ledger


@pytest.mark.parametrize("code", ["server_error", "malformed", "empty", "cut"])
def test_two_that_fail_alike_on_a_request_nobody_answers_are_charged_neither(code: str) -> None:
    verdicts, ledger = after([(A, code), (B, code)])
    assert ledger.told == []
    verdicts.settle(0.0)
    assert ledger.told == ["a released", "b released"]


def test_two_that_fail_differently_are_both_charged() -> None:
    verdicts, ledger = after([(A, "server_error"), (B, "cut")])
    verdicts.settle(0.0)
    assert ledger.told == ["a server_error", "b cut"]


def test_two_that_fail_alike_are_both_charged_when_a_third_answers() -> None:
    verdicts, ledger = after([(A, "server_error"), (B, "server_error")])
    verdicts.committed(candidate(C), 0.0)
    assert ledger.told == ["a server_error", "b server_error"]
    verdicts.settle(0.0)
    assert len(ledger.told) == 2


@pytest.mark.parametrize("code", ["connect", "timeout_ttft", "rate_limited", "overloaded", "auth"])
def test_what_no_request_can_cause_is_charged_at_once(code: str) -> None:
    _, ledger = after([(A, code), (B, code)])
    assert ledger.told == [f"a {code}", f"b {code}"]


@pytest.mark.parametrize("code", ["bad_request", "context_length", "content_filter"])
def test_the_callers_mistake_charges_nobody(code: str) -> None:
    _, ledger = after([(A, code)])
    assert ledger.told == ["a released"]


def test_the_same_deployment_twice_is_no_second_opinion() -> None:
    verdicts, ledger = after([(A, "server_error"), (A, "server_error")])
    verdicts.settle(0.0)
    assert ledger.told == ["a server_error", "a server_error"]


def test_a_trial_has_succeeded_at_its_first_token() -> None:
    verdicts, ledger = after([])
    verdicts.committed(candidate(A, "trial"), 0.0)
    verdicts.committed(candidate(B), 0.0)
    assert ledger.told == ["a succeeded"]
