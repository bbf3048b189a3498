"""The sag detector: which deployments are alive but slower than they themselves usually are, told with confidence."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from gateway.core.ports import SpeedEvidenceSource
from gateway.core.record import GenerationRecord
from gateway.core.types import Deployment, Estimate, Health, SagPolicy, SpeedEvidence

# Standard errors between an estimate and the bound that is believed.
CONFIDENCE = 2.5

# Effective samples below which the window says nothing, and the baseline is none yet.
MIN_SAMPLES = 3.0
MIN_BASELINE_SAMPLES = 8.0

# A handful of samples that happen to agree would claim an error near 0: no single sample is trusted beyond this.
LEAST_SPREAD = 0.15

# Residual of ln TTFT above which first tokens come late.
LATE = log(1.5)

# Good samples in a row that end a sag, and the last ones that must agree before one begins.
GOOD_SAMPLES = 3
RECENT_SAMPLES = 5

MAX_DWELL_S = 300.0
RELAPSE_WITHIN_S = 600.0

# How long a mere suspicion keeps the baseline from learning.
DOUBT_S = 120.0

# Deployments that turn slow within this time of each other do so at once; one unheard of for longer has no say.
AT_ONCE_S = 120.0
HEARD_OF_WITHIN_S = 600.0

# A sag that keeps its level (within the share) for so long is the new normal; the old baseline has faded by the end.
STEADY_S = 1800.0
STEADY_WITHIN = 0.25
FADED_AFTER_S = 3 * 3600.0

# A share of 0 in the configuration means never.
_LEAST = 1e-9

_OK = Health("ok")
_UNMEASURED = Health("unmeasured")


@dataclass(slots=True)
class _Watch:
    """One deployment under observation. Logarithms of tok/s; moments in monotonic seconds.

    `shown`: the state as the planner sees it. `slow_since`: the evidence says slow since then, demoted or held.
    `ceiling`: the level learnt anew, which stands in for a higher baseline until `ceiling_until`.
    """

    id: str
    provider: str
    dwell_s: float
    shown: Health = _UNMEASURED
    began_at: float = 0.0
    recovered_at: float | None = None
    slow_since: float | None = None
    doubted_since: float | None = None
    heard_at: float | None = None
    good: int = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_SAMPLES))
    level: float = 0.0
    level_since: float = 0.0
    ceiling: float | None = None
    ceiling_until: float = 0.0

    @property
    def sagging(self) -> bool:
        return self.shown.state == "sagging"

    def slow_lately(self, limit: float, interim: Sequence[float]) -> bool:
        """Whether the latest samples, those of running streams last, lie under the limit on average."""
        latest = [*self.recent, *interim][-RECENT_SAMPLES:] if interim else self.recent
        return len(latest) >= GOOD_SAMPLES and sum(latest) < limit * len(latest)


class SagDetector:
    """Judges each finished request's deployment on the evidence and remembers the states.

    The source must have learnt of the request before the detector is told of it.
    """

    def __init__(self, policy: SagPolicy, source: SpeedEvidenceSource) -> None:
        self._policy = policy
        self._source = source
        self._below, self._recover = log(max(policy.below, _LEAST)), log(max(policy.recover, _LEAST))
        self._watches: dict[str, _Watch] = {}

    def add(self, deployment: Deployment) -> None:
        """Begins to watch a deployment."""
        self._watches[deployment.id] = _Watch(deployment.id, deployment.provider.name, self._policy.dwell_s)

    def shown(self, deployment_id: str) -> Health:
        """`ok`, `unmeasured` or `sagging` with its cause; `until` is the end of the dwell."""
        watch = self._watches.get(deployment_id)
        return _UNMEASURED if watch is None else watch.shown

    def reset(self, deployment_id: str) -> None:
        """Forgets a sag, as an administrator may ask; the evidence stays."""
        watch = self._watches.get(deployment_id)
        if watch is not None and watch.sagging:
            self._recovered(watch, watch.began_at)

    def observe(self, deployment_id: str, record: GenerationRecord, now: float) -> str | None:
        """Learns of a finished request; the reason, where it changed the state or made it hold."""
        watch = self._watches.get(deployment_id)
        if watch is None:
            return None
        watch.heard_at = now
        evidence = self._source.evidence(deployment_id, now)
        began = now - (record.timing.duration_ms or 0.0) / 1000.0
        if watch.sagging:
            if began >= watch.began_at:
                self._count_good(watch, evidence, record, now)
            return self._while_sagging(watch, evidence, now)
        sample = _sample(record)
        if sample is not None and (watch.recovered_at is None or began >= watch.recovered_at):
            watch.recent.append(sample)
        return self._while_well(watch, evidence, now)

    def look(self, deployment_id: str, now: float) -> str | None:
        """Judges by what the running streams show so far, before any of them ends; the reason, as for `observe`."""
        watch = self._watches.get(deployment_id)
        if watch is None or watch.sagging:
            return None
        watch.heard_at = now
        return self._while_well(watch, self._source.evidence(deployment_id, now), now)

    # -- well → sagging

    def _while_well(self, watch: _Watch, evidence: SpeedEvidence, now: float) -> str | None:
        cause = self._cause(watch, evidence, now)
        if cause is not None:
            return self._turned_slow(watch, evidence, cause, now)
        if watch.slow_since is not None:
            watch.slow_since = None
            self._source.freeze(watch.id, False)
        self._doubt(watch, evidence, now)
        if watch.shown is _UNMEASURED and evidence.speed is not None and evidence.speed.count >= MIN_SAMPLES:
            watch.shown = _OK
            return "measured"
        return None

    def _cause(self, watch: _Watch, evidence: SpeedEvidence, now: float) -> str | None:
        limit = self._limit(watch, evidence, now)
        # After a recovery the window still holds the slow samples: those since then must say the same.
        if limit is not None and watch.slow_lately(limit, evidence.interim) and _upper(evidence.speed) < limit:
            return "speed"
        if evidence.ttft is not None and evidence.ttft.mean - _margin(evidence.ttft) > LATE:
            return "ttft"
        return None

    def _doubt(self, watch: _Watch, evidence: SpeedEvidence, now: float) -> None:
        """Stops the baseline at the first slow samples: a young one would learn the sag before it is certain."""
        limit = self._limit(watch, evidence, now)
        if limit is None or not watch.slow_lately(limit, evidence.interim):
            if watch.doubted_since is not None:
                watch.doubted_since = None
                self._source.freeze(watch.id, False)
        elif watch.doubted_since is None:
            watch.doubted_since = now
            self._source.freeze(watch.id, True)
        elif now - watch.doubted_since > DOUBT_S:
            self._source.freeze(watch.id, False)

    def _limit(self, watch: _Watch, evidence: SpeedEvidence, now: float) -> float | None:
        normal = self._normal(watch, evidence, now)
        return None if normal is None else normal + self._below

    def _normal(self, watch: _Watch, evidence: SpeedEvidence, now: float) -> float | None:
        baseline = evidence.baseline
        if watch.ceiling is not None and now >= watch.ceiling_until:
            watch.ceiling = None
        if baseline is None or baseline.count < MIN_BASELINE_SAMPLES:
            return watch.ceiling
        return baseline.mean if watch.ceiling is None else min(baseline.mean, watch.ceiling)

    def _turned_slow(self, watch: _Watch, evidence: SpeedEvidence, cause: str, now: float) -> str | None:
        news = watch.slow_since is None
        if news:
            watch.slow_since = now
            self._source.freeze(watch.id, True)
        if self._own_network(watch, now):
            return "own_network" if news else None
        relapse = watch.recovered_at is not None and now - watch.recovered_at < RELAPSE_WITHIN_S
        longest = max(MAX_DWELL_S, self._policy.dwell_s)
        watch.dwell_s = min(watch.dwell_s * 2.0, longest) if relapse else self._policy.dwell_s
        watch.shown = Health("sagging", cause, now + watch.dwell_s)
        watch.began_at, watch.good = now, 0
        watch.level, watch.level_since = 0.0 if evidence.speed is None else evidence.speed.mean, now
        return cause

    def _own_network(self, watch: _Watch, now: float) -> bool:
        """Over half of what is measured, of two or more providers, turned slow at once: not their fault."""
        measured = [
            other
            for other in self._watches.values()
            if other.shown is not _UNMEASURED and other.heard_at is not None
            if now - other.heard_at <= HEARD_OF_WITHIN_S
        ]
        since = watch.slow_since if watch.slow_since is not None else now
        slow = [
            other for other in measured if other.slow_since is not None and abs(other.slow_since - since) <= AT_ONCE_S
        ]
        return len(slow) > len(measured) / 2 and len({other.provider for other in slow}) >= 2

    # -- sagging → well

    def _count_good(self, watch: _Watch, evidence: SpeedEvidence, record: GenerationRecord, now: float) -> None:
        if watch.shown.reason == "ttft":
            if record.timing.ttft_ms is None:
                return
            good = evidence.ttft is None or evidence.ttft.mean < LATE
        else:
            sample, normal = _sample(record), self._normal(watch, evidence, now)
            if sample is None:
                return
            good = normal is None or sample >= normal + self._recover
        watch.good = watch.good + 1 if good else 0

    def _while_sagging(self, watch: _Watch, evidence: SpeedEvidence, now: float) -> str | None:
        if watch.good >= GOOD_SAMPLES and now >= (watch.shown.until or now):
            self._recovered(watch, now)
            return "recovered"
        if watch.shown.reason == "ttft" and now - watch.began_at >= STEADY_S:
            self._source.freeze(watch.id, False)  # late for so long: the prediction may learn it, which ends the sag
        elif self._steady(watch, evidence, now) and evidence.speed is not None:
            watch.ceiling, watch.ceiling_until = evidence.speed.mean, now + FADED_AFTER_S
            self._recovered(watch, now)
            return "new_baseline"
        return None

    def _steady(self, watch: _Watch, evidence: SpeedEvidence, now: float) -> bool:
        if watch.shown.reason != "speed" or evidence.speed is None:
            return False
        if abs(evidence.speed.mean - watch.level) > STEADY_WITHIN:
            watch.level, watch.level_since = evidence.speed.mean, now
        return now - watch.level_since >= STEADY_S

    def _recovered(self, watch: _Watch, now: float) -> None:
        watch.shown = _OK
        watch.slow_since = watch.doubted_since = None
        watch.recovered_at = now
        watch.recent.clear()
        self._source.freeze(watch.id, False)


def _upper(estimate: Estimate | None) -> float:
    return float("inf") if estimate is None else estimate.mean + _margin(estimate)


def _margin(estimate: Estimate) -> float:
    """How far the bound lies from the mean; infinite with too few samples."""
    if not estimate.count >= MIN_SAMPLES:
        return float("inf")
    return CONFIDENCE * max(estimate.error, LEAST_SPREAD / sqrt(estimate.count))


def _sample(record: GenerationRecord) -> float | None:
    speed = record.speed
    sound = speed.quality == "ok" or speed.source == "server"
    if not sound or speed.output_tps is None or not speed.output_tps > 0.0:
        return None
    return log(speed.output_tps)
