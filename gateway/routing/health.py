"""The health book: each deployment's state, joined from breaker, sag detector and the administrator's switch."""

from collections.abc import Callable, Iterable

from gateway.core.clock import monotonic
from gateway.core.errors import FAILURES
from gateway.core.ports import Clock, SpeedEvidenceSource
from gateway.core.record import GenerationRecord
from gateway.core.types import BreakerPolicy, Deployment, SagPolicy
from gateway.core.types import Health as State
from gateway.routing.breaker import Breaker
from gateway.routing.filters import TRIAL_IN_FLIGHT
from gateway.routing.sag import SagDetector

# Told of every change: deployment id, the new state's name, the reason.
OnTransition = Callable[[str, str, str], None]

# Failures that are the caller's own where the caller's own key is used.
_OF_THE_CALLERS_KEY = frozenset({"auth", "quota", "rate_limited"})

_DISABLED = State("disabled", "admin")
_UNHEARD = State("unmeasured")


class _Family:
    """The deployments of one provider. `until`: the provider as a whole is cooling."""

    __slots__ = ("members", "until")

    def __init__(self) -> None:
        self.members: list[_Watch] = []
        self.until: float | None = None


class _Watch:
    """One deployment. `steady` is its state where neither breaker nor provider has a say, `timed`, where one has."""

    __slots__ = ("breaker", "deployment", "disabled", "family", "reported", "steady", "succeeded_at", "timed")

    def __init__(self, deployment: Deployment, breaker: Breaker, family: _Family, steady: State) -> None:
        self.deployment = deployment
        self.breaker = breaker
        self.family = family
        self.steady = steady
        self.reported: str = steady.state
        self.disabled = False
        self.timed = False
        self.succeeded_at: float | None = None

    def judge(self, now: float) -> State:
        """The state at this moment."""
        if self.disabled:
            return _DISABLED
        breaker = self.breaker
        ends = breaker.cooling_until(now)
        if ends is not None:
            return State("cooling", breaker.reason(), ends)
        if self.family.until is not None and self.family.until > now:
            return State("cooling", "provider", self.family.until)
        if breaker.is_open:
            return State("probing", TRIAL_IN_FLIGHT if breaker.trial_in_flight(now) else "trial_due", breaker.until)
        return self.steady


class Health:
    """Implements core's `HealthBook` and `Listener`.

    As a listener it must come after the one that gathers the evidence: a sag is judged with the request included.
    """

    def __init__(
        self,
        deployments: Iterable[Deployment],
        breaker: BreakerPolicy,
        sag: SagPolicy,
        evidence: SpeedEvidenceSource,
        on_transition: OnTransition,
        clock: Clock = monotonic,
    ) -> None:
        self._policy = breaker
        self._sag = SagDetector(sag, evidence)
        self._on_transition = on_transition
        self._clock = clock
        self._families: dict[str, _Family] = {}
        self._watches: dict[str, _Watch] = {}
        for deployment in deployments:
            self._add(deployment)

    def health(self, deployment: Deployment, now: float) -> State:
        """The deployment's state; what was never heard of is unmeasured."""
        watch = self._watches.get(deployment.id)
        if watch is None:
            return _UNHEARD
        return watch.judge(now) if watch.timed else watch.steady

    def admit(self, deployment: Deployment, now: float) -> None:
        """An attempt begins: at a half-open deployment it is the trial."""
        watch = self._watch(deployment)
        if watch.timed:
            watch.breaker.admit(now)
            self._settle(watch.family, now, "trial")

    def failed(
        self, deployment: Deployment, code: str, request_id: str, retry_after_s: float | None, now: float
    ) -> None:
        """An attempt failed; what is not the deployment's own fault only frees the trial."""
        watch = self._watch(deployment)
        if not _at_fault(deployment, code):
            watch.breaker.released()
            return
        breaker = watch.breaker
        openings = breaker.openings
        breaker.failed(code, request_id, retry_after_s, now)
        watch.timed = True
        if breaker.openings > openings:
            self._open_provider(watch.family, now)
        self._settle(watch.family, now, code)

    def succeeded(self, deployment: Deployment, now: float) -> None:
        """An attempt was answered well."""
        watch = self._watch(deployment)
        watch.succeeded_at = now
        watch.breaker.succeeded(now)
        if watch.timed:
            watch.family.until = None
            self._settle(watch.family, now, "recovered")

    def released(self, deployment: Deployment, now: float) -> None:
        """An attempt ended without a verdict."""
        self._watch(deployment).breaker.released()

    def record(self, record: GenerationRecord) -> None:
        """A finished request: what the sag detector lives on."""
        watch = self._watches.get(record.deployment or "")
        if watch is None:
            return
        now = self._clock()
        reason = self._sag.observe(watch.deployment.id, record, now)
        if reason is not None:
            self._show(watch, now, reason)

    def look(self, deployment_ids: Iterable[str], now: float) -> None:
        """Judges these deployments by their running streams, as far as the evidence has come."""
        for deployment_id in deployment_ids:
            watch = self._watches.get(deployment_id)
            reason = self._sag.look(deployment_id, now) if watch is not None else None
            if watch is not None and reason is not None:
                self._show(watch, now, reason)

    def disable(self, deployment_id: str) -> None:
        """Takes the deployment out of all plans until it is enabled again. KeyError where it is unknown."""
        self._switch(deployment_id, disabled=True)

    def enable(self, deployment_id: str) -> None:
        """Undoes `disable`. KeyError where it is unknown."""
        self._switch(deployment_id, disabled=False)

    def reset(self, deployment_id: str) -> None:
        """Forgets failures, cooldown and sag of a deployment. KeyError where it is unknown."""
        watch, now = self._watches[deployment_id], self._clock()
        watch.breaker = Breaker(self._policy)
        watch.family.until = None
        self._sag.reset(deployment_id)
        self._show(watch, now, "reset")

    def _switch(self, deployment_id: str, *, disabled: bool) -> None:
        watch = self._watches[deployment_id]
        watch.disabled = disabled
        self._show(watch, self._clock(), "admin")

    def _show(self, watch: _Watch, now: float, reason: str) -> None:
        watch.steady = self._sag.shown(watch.deployment.id)
        self._settle(watch.family, now, reason)
        if reason == "own_network":  # no state changes, and yet somebody should know
            self._on_transition(watch.deployment.id, watch.reported, reason)

    def _settle(self, family: _Family, now: float, reason: str) -> None:
        """Decides for a provider's deployments who must look at the clock, and tells of changes."""
        for watch in family.members:
            state = watch.judge(now)
            watch.timed = watch.disabled or family.until is not None or watch.breaker.is_timed(now)
            if state.state != watch.reported:
                watch.reported = state.state
                self._on_transition(watch.deployment.id, state.state, state.reason or reason)

    def _open_provider(self, family: _Family, now: float) -> None:
        """Cools a provider of which two deployments are open and none succeeded since the later one began to fail."""
        opened = [watch.breaker for watch in family.members if watch.breaker.is_open]
        if len(opened) < 2:
            return
        since = max(breaker.run_since for breaker in opened)
        if all(watch.succeeded_at is None or watch.succeeded_at < since for watch in family.members):
            family.until = max(breaker.until or now for breaker in opened)

    def _watch(self, deployment: Deployment) -> _Watch:
        return self._watches.get(deployment.id) or self._add(deployment)

    def _add(self, deployment: Deployment) -> _Watch:
        self._sag.add(deployment)
        family = self._families.setdefault(deployment.provider.name, _Family())
        watch = _Watch(deployment, Breaker(self._policy), family, self._sag.shown(deployment.id))
        family.members.append(watch)
        self._watches[deployment.id] = watch
        return watch


def _at_fault(deployment: Deployment, code: str) -> bool:
    if code in _OF_THE_CALLERS_KEY and deployment.provider.credential.kind == "caller":
        return False
    return code in FAILURES and FAILURES[code].charges
