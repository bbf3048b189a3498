"""The circuit breaker of one deployment: when failures take it out of plans, and how it comes back."""

from dataclasses import dataclass
from math import isfinite

from gateway.core.types import BreakerPolicy

# The longest an upstream's Retry-After is believed.
MAX_RETRY_AFTER_S = 300.0

# A 429 that does not say how long.
SHORT_REST_S = 2.0

# Failures that no retry mends: one is enough for the longest cooldown.
CREDENTIAL_CODES = frozenset({"auth", "quota"})

_BUCKETS = 10
_MAX_DOUBLINGS = 30


class Breaker:
    """Closed, open (cooling until a moment), then half-open: one trial at a time until one succeeds or fails.

    Apart from that, `rest_until` is a rate limit's pause: it ends by itself, needs no trial and proves no fault.
    All moments are monotonic seconds given by the caller. Memory is constant.
    """

    __slots__ = (
        "_cause",
        "_culprits",
        "_policy",
        "_trial_at",
        "_window",
        "consecutive",
        "openings",
        "rest_until",
        "run_since",
        "until",
    )

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._window = FailureWindow(policy.window_s)
        self._culprits = Culprits()
        self._trial_at: float | None = None
        self._cause: str | None = None
        self.consecutive = 0
        self.run_since = 0.0
        self.openings = 0
        self.until: float | None = None
        self.rest_until: float | None = None

    @property
    def is_open(self) -> bool:
        """Open or half-open."""
        return self.until is not None

    def cooling_until(self, now: float) -> float | None:
        """The moment the deployment may be planned again; None when it may be now (a half-open trial included)."""
        ends = max(self.until or now, self.rest_until or now)
        return ends if ends > now else None

    def is_timed(self, now: float) -> bool:
        """Whether the state depends on the clock."""
        return self.until is not None or (self.rest_until is not None and self.rest_until > now)

    def reason(self) -> str:
        """The failure code that keeps the deployment out for longest."""
        rests_longer = (self.rest_until or 0.0) > (self.until or 0.0)
        return "rate_limited" if rests_longer or self._cause is None else self._cause

    def trial_in_flight(self, now: float) -> bool:
        """A trial whose end nobody told us of is forgotten after the longest cooldown."""
        return self._trial_at is not None and now - self._trial_at < self._policy.max_cooldown_s

    def admit(self, now: float) -> None:
        """An attempt begins; while open it is the trial (or a last resort, whose success is as good a proof)."""
        if self.until is not None:
            self._trial_at = now

    def released(self) -> None:
        """An attempt ended without a verdict."""
        self._trial_at = None

    def succeeded(self, now: float) -> None:
        """Closes a breaker that had admitted an attempt since it opened; a stream from before proves nothing."""
        if self.rest_until is not None and now >= self.rest_until:
            self.rest_until = None
        self._window.add(now, failure=False)
        if self.until is None:
            self.consecutive = 0
        elif self._trial_at is not None:
            self._close()

    def failed(self, code: str, request_id: str, retry_after_s: float | None, now: float) -> None:
        """Counts a failure and opens where the policy says so."""
        if code == "rate_limited" and self._rest(retry_after_s, now):
            return
        self._count(request_id, now)
        cooling = self.until is not None and now < self.until
        if code in CREDENTIAL_CODES and not (cooling and self._cause in CREDENTIAL_CODES):
            self._open(code, now, self._policy.max_cooldown_s)
        elif not cooling and (self.until is not None or self._too_many(now)):
            self._open(code, now, self._cooldown())
        self._trial_at = None

    def _rest(self, retry_after_s: float | None, now: float) -> bool:
        """Pauses for a rate limit; True where the upstream said for how long and so is not at fault."""
        told = retry_after_s is not None and isfinite(retry_after_s) and retry_after_s > 0.0
        pause = min(retry_after_s or 0.0, MAX_RETRY_AFTER_S) if told else SHORT_REST_S
        self.rest_until = max(self.rest_until or now, now + pause)
        if told:
            self._trial_at = None
        return told

    def _count(self, request_id: str, now: float) -> None:
        if self.consecutive == 0:
            self.run_since = now
        self.consecutive += 1
        self._window.add(now, failure=True)
        self._culprits.add(request_id, now)

    def _too_many(self, now: float) -> bool:
        policy = self._policy
        if self.consecutive >= policy.failures and self._culprits.two_since(self.run_since):
            return True
        total, failures = self._window.counts(now)
        busy = total >= policy.min_requests and failures >= policy.ratio * total
        return busy and self._culprits.two_since(now - policy.window_s)

    def _cooldown(self) -> float:
        doubled = self._policy.cooldown_s * 2.0 ** min(self.openings, _MAX_DOUBLINGS)
        return min(doubled, self._policy.max_cooldown_s)

    def _open(self, reason: str, now: float, cooldown_s: float) -> None:
        self.openings += 1
        self.until = max(self.until or now, now + cooldown_s)
        self._cause = reason

    def _close(self) -> None:
        self.until = self._trial_at = self._cause = None
        self.openings = self.consecutive = 0
        self._window.clear()
        self._culprits = Culprits()


@dataclass(slots=True)
class Culprits:
    """The two latest different requests that failed: one poisonous prompt, tried again, is a single one."""

    latest: str | None = None
    latest_at: float = 0.0
    other_at: float | None = None

    def add(self, request_id: str, now: float) -> None:
        if request_id != self.latest and self.latest is not None:
            self.other_at = self.latest_at
        self.latest, self.latest_at = request_id, now

    def two_since(self, moment: float) -> bool:
        """Whether two different requests failed at or after the moment."""
        return self.other_at is not None and self.other_at >= moment


class FailureWindow:
    """Attempts and failures over a sliding window, in ten slots of time."""

    __slots__ = ("_failures", "_slot", "_totals", "_width_s")

    def __init__(self, window_s: float) -> None:
        self._width_s = max(window_s, 1e-3) / _BUCKETS
        self._slot = 0
        self._totals = [0] * _BUCKETS
        self._failures = [0] * _BUCKETS

    def add(self, now: float, *, failure: bool) -> None:
        """Counts one attempt that ended at `now`."""
        index = self._advance(now) % _BUCKETS
        self._totals[index] += 1
        self._failures[index] += failure

    def counts(self, now: float) -> tuple[int, int]:
        """Attempts and failures of the window that ends at `now`."""
        self._advance(now)
        return sum(self._totals), sum(self._failures)

    def clear(self) -> None:
        """Forgets everything counted."""
        self._totals = [0] * _BUCKETS
        self._failures = [0] * _BUCKETS

    def _advance(self, now: float) -> int:
        """Empties the slots that lie between the last one used and now's; an earlier moment counts as the last one."""
        slot = max(self._slot, int(now / self._width_s))
        for passed in range(self._slot + 1, min(slot, self._slot + _BUCKETS) + 1):
            self._totals[passed % _BUCKETS] = self._failures[passed % _BUCKETS] = 0
        self._slot = slot
        return slot
