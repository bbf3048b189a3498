"""What the routing tests route over: small fleets, calls, records, and a speed book that decays like the real one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, inf, log, sqrt

from hypothesis import HealthCheck, settings

from gateway.core.record import GenerationRecord, Speed, Timing
from gateway.core.types import (
    BreakerPolicy,
    Call,
    Caller,
    Catalog,
    Credential,
    Deployment,
    Estimate,
    Health,
    Needs,
    Provider,
    SagPolicy,
    SpeedEvidence,
    Target,
    Timeouts,
)
from gateway.routing.health import Health as Keeper

# Examples are cheap; on a busy machine their generation is slow all the same, which says nothing of the code.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def deployment(
    name: str,
    *,
    weight: float = 1.0,
    context: int | None = None,
    features: Iterable[str] | None = None,
    callers_key: bool = False,
) -> Deployment:
    """`provider/model`, as ids are by default."""
    provider, _, model = name.partition("/")
    return Deployment(
        id=name,
        provider=Provider(provider, "http://upstream", credential=Credential("caller" if callers_key else "none")),
        model=model,
        upstream_model=model,
        weight=weight,
        context=context,
        features=None if features is None else frozenset(features),
    )


def target(
    name: str, deployments: Iterable[Deployment], *, strategy: str = "order", fallback: Iterable[str] = ()
) -> Target:
    return Target(name, tuple(deployments), strategy, Timeouts(), fallback=tuple(fallback))


def catalog(*targets: Target) -> Catalog:
    entries = {entry.id: entry for one in targets for entry in one.deployments}
    return Catalog({one.name: one for one in targets}, tuple(one.name for one in targets), entries, {})


def call(asked: Target, needs: Needs | None = None, *, stream: bool = True) -> Call:
    return Call(
        id="request",
        surface="chat.completions",
        path="/v1/chat/completions",
        body={},
        stream=stream,
        target=asked,
        caller=Caller(),
        needs=needs or Needs(),
        started=0.0,
        received=0.0,
    )


class ScriptedHealth:
    """A health book that says what it was told to, `ok` for the rest."""

    def __init__(self, states: Mapping[str, Health] | None = None) -> None:
        self.states = dict(states or {})

    def health(self, deployment: Deployment, now: float) -> Health:
        return self.states.get(deployment.id, Health("ok"))

    def admit(self, deployment: Deployment, now: float) -> None: ...

    def failed(
        self, deployment: Deployment, code: str, request_id: str, retry_after_s: float | None, now: float
    ) -> None: ...

    def succeeded(self, deployment: Deployment, now: float) -> None: ...

    def released(self, deployment: Deployment, now: float) -> None: ...


class Now:
    """A clock that stands where it is put."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class ScriptedEvidence:
    """Evidence as told, and a note of what was frozen."""

    def __init__(self) -> None:
        self.says: dict[str, SpeedEvidence] = {}
        self.frozen: dict[str, bool] = {}

    def evidence(self, deployment_id: str, now: float) -> SpeedEvidence:
        return self.says.get(deployment_id, SpeedEvidence())

    def freeze(self, deployment_id: str, frozen: bool) -> None:
        self.frozen[deployment_id] = frozen


def keeper(
    deployments: Iterable[Deployment],
    *,
    breaker: BreakerPolicy | None = None,
    evidence: ScriptedEvidence | None = None,
    tell: Callable[[str, str, str], None] = lambda *_: None,
    clock: Now | None = None,
) -> Keeper:
    return Keeper(
        deployments,
        breaker or BreakerPolicy(),
        SagPolicy(),
        evidence or ScriptedEvidence(),
        tell,
        clock or Now(),
    )


def record(
    deployment_id: str, output_tps: float | None, *, duration_s: float = 1.0, quality: str = "ok"
) -> GenerationRecord:
    return GenerationRecord(
        id="request",
        created="2026-11-30T12:00:00.000Z",
        surface="chat.completions",
        stream=True,
        requested_model="model",
        outcome="ok",
        deployment=deployment_id,
        timing=Timing(ttft_ms=200.0, duration_ms=duration_s * 1000.0),
        speed=Speed(output_tps=output_tps, quality=quality),
    )


@dataclass(slots=True)
class DecayedSums:
    """A decayed mean of one time constant, with weights of 1."""

    tau_s: float
    at: float = -inf
    weight: float = 0.0
    squared: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float, now: float) -> None:
        self._decay(now)
        self.weight += 1.0
        self.squared += 1.0
        self.total += value
        self.squares += value * value

    def estimate(self, now: float) -> Estimate | None:
        self._decay(now)
        if self.squared < 1e-9:
            return None
        mean = self.total / self.weight
        count = self.weight**2 / self.squared
        variance = max(self.squares / self.weight - mean * mean, 0.0) * count / max(count - 1.0, 0.1)
        return Estimate(mean, sqrt(variance / count), count)

    def _decay(self, now: float) -> None:
        keep = exp((self.at - now) / self.tau_s)
        self.at = now
        self.weight *= keep
        self.squared *= keep * keep
        self.total *= keep
        self.squares *= keep


@dataclass(slots=True)
class LadderBook:
    """Speed evidence from decayed sums at 15, 60 and 300 s, and 3600 s for the baseline."""

    ladder: dict[str, list[DecayedSums]] = field(default_factory=dict)
    baselines: dict[str, DecayedSums] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)

    def add(self, deployment_id: str, output_tps: float, now: float) -> None:
        rungs = self.ladder.setdefault(deployment_id, [DecayedSums(15.0), DecayedSums(60.0), DecayedSums(300.0)])
        for rung in rungs:
            rung.add(log(output_tps), now)
        if deployment_id not in self.frozen:
            self.baselines.setdefault(deployment_id, DecayedSums(3600.0)).add(log(output_tps), now)

    def evidence(self, deployment_id: str, now: float) -> SpeedEvidence:
        speed: Estimate | None = None
        for rung in self.ladder.get(deployment_id, ()):
            speed = rung.estimate(now)
            if speed is not None and speed.count >= 8.0:
                break
        base = self.baselines.get(deployment_id)
        return SpeedEvidence(speed, base.estimate(now) if base is not None else None)

    def freeze(self, deployment_id: str, frozen: bool) -> None:
        if frozen:
            self.frozen.add(deployment_id)
        else:
            self.frozen.discard(deployment_id)
