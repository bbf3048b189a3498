"""Which failures count against a deployment: one poisonous request must not cool the whole fleet."""

from gateway.core.errors import AttemptError
from gateway.core.ports import HealthBook
from gateway.core.types import Candidate, Deployment

# Failures that a request itself can cause.
_POISONABLE = frozenset({"server_error", "malformed", "empty", "cut", "not_found"})


class Verdicts:
    """Passes the outcomes of one request's attempts to the health book, the doubtful ones when they are settled.

    See docs/decisions/0003-poisonous-requests.md.
    """

    def __init__(self, health: HealthBook, request_id: str) -> None:
        self._health = health
        self._request_id = request_id
        self._pending: list[tuple[Deployment, AttemptError]] = []

    def failed(self, deployment: Deployment, error: AttemptError, now: float) -> None:
        """An attempt failed before or after its commit."""
        if not error.charges:
            self._health.released(deployment, now)
        elif error.code in _POISONABLE:
            self._pending.append((deployment, error))
        else:
            self._charge(deployment, error, now)

    def answered(self, deployment: Deployment, now: float) -> None:
        """An attempt's answer is complete."""
        self._health.succeeded(deployment, now)

    def left(self, deployment: Deployment, now: float) -> None:
        """The attempt ended with no verdict: the client went, or the mistake was its own."""
        self._health.released(deployment, now)

    def committed(self, candidate: Candidate, now: float) -> None:
        """An attempt's first token was passed on: the request was sound, and whoever failed it is charged.

        A half-open trial has succeeded here; the end of a long stream would keep the others out until then.
        """
        for deployment, error in self._pending:
            self._charge(deployment, error, now)
        self._pending.clear()
        if candidate.reason == "trial":
            self._health.succeeded(candidate.deployment, now)

    def settle(self, now: float) -> None:
        """The request is over. Where nothing answered, two that failed alike point at the request."""
        places: dict[str, set[str]] = {}
        for deployment, error in self._pending:
            places.setdefault(error.code, set()).add(deployment.id)
        for deployment, error in self._pending:
            if len(places[error.code]) > 1:
                self._health.released(deployment, now)
            else:
                self._charge(deployment, error, now)
        self._pending.clear()

    def _charge(self, deployment: Deployment, error: AttemptError, now: float) -> None:
        self._health.failed(deployment, error.code, self._request_id, error.retry_after_s, now)
