"""What the routing tests route over: small fleets, calls and records."""

from collections.abc import Callable, Iterable, Mapping

from hypothesis import HealthCheck, settings

from gateway.core.record import GenerationRecord, Speed, Timing
from gateway.core.types import (
    BreakerPolicy,
    Call,
    Caller,
    Catalog,
    Credential,
    Deployment,
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
    max_output: int | None = None,
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
        max_output=max_output,
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
    deployment_id: str,
    output_tps: float | None,
    *,
    ttft_s: float = 0.2,
    duration_s: float = 1.0,
    quality: str | None = "ok",
    source: str = "client",
) -> GenerationRecord:
    return GenerationRecord(
        id="request",
        created="2026-11-30T12:00:00.000Z",
        surface="chat.completions",
        stream=True,
        requested_model="model",
        outcome="ok",
        deployment=deployment_id,
        timing=Timing(ttft_ms=ttft_s * 1000.0, duration_ms=duration_s * 1000.0),
        speed=Speed(output_tps=output_tps, quality=quality, source=source, weight=1.0),
    )
