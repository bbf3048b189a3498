"""The planner: from a call to the ordered deployments that may serve it, without I/O."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter

from gateway.core.errors import ConfigError
from gateway.core.ports import HealthBook
from gateway.core.types import Call, Candidate, Catalog, Deployment, Dropped, Plan, Target
from gateway.routing.filters import Sifted, sift
from gateway.routing.strategies import STRATEGIES
from gateway.routing.strategies.contract import Strategy

# A sagging deployment leads one plan in this time, or nobody would see that it is well again.
TRICKLE_EVERY_S = 5.0

# A long prompt is never the one that tries out a slow deployment.
TRICKLE_MAX_PROMPT_TOKENS = 8_000


@dataclass(frozen=True, slots=True)
class Leg:
    """One target on the way: the one asked for, or a fallback. `deployments` leaves out those of earlier legs.

    `usual`: by deployment id, the candidate where nothing is amiss, made once since plans are many.
    """

    target: Target
    deployments: tuple[Deployment, ...]
    rank: Strategy
    fallback: bool
    usual: Mapping[str, Candidate]


class RoutePlanner:
    """Implements core's `Planner` over one catalog.

    A plan is never empty because of health: where every able deployment is cooling they all come back, the one whose
    cooldown ends first in front. Only policy and capability can leave none.
    """

    def __init__(self, catalog: Catalog, health: HealthBook, rng: random.Random) -> None:
        """Raises ConfigError where a target names a strategy that is not in the table."""
        self._health = health
        self._rng = rng
        self._targets = catalog.targets
        self._trickled: dict[str, float] = {}
        self._legs: Mapping[str, tuple[Leg, ...]] = {
            target.name: tuple(_legs(target, catalog.targets)) for target in catalog.targets.values()
        }

    def plan(self, call: Call, now: float) -> Plan:
        """The candidates for one call, in the order they are to be tried."""
        dropped: list[Dropped] = []
        candidates: list[Candidate] = []
        resting: list[tuple[float, Candidate]] = []
        for leg in self._legs_of(call.target):
            sifted = sift(leg.deployments, call.needs, self._health, now, dropped)
            candidates += self._ranked(leg, sifted, call, now)
            for deployment, health in sifted.resting:
                resting.append((health.until or now, Candidate(deployment, leg.target, "last_resort")))
        if not candidates:
            resting.sort(key=itemgetter(0))
            return Plan(tuple([candidate for _, candidate in resting]), tuple(dropped))
        if resting:
            dropped += [Dropped(candidate.deployment, "cooling") for _, candidate in resting]
        if len(candidates) == 1 and candidates[0].reason in STRATEGIES:
            candidates[0] = replace(candidates[0], reason="only_choice")
        return Plan(tuple(candidates), tuple(dropped))

    def _legs_of(self, target: Target) -> tuple[Leg, ...]:
        legs = self._legs.get(target.name)
        if legs is not None and legs[0].target is target:
            return legs
        return tuple(_legs(target, self._targets))  # a target made for this one call

    def _ranked(self, leg: Leg, sifted: Sifted, call: Call, now: float) -> list[Candidate]:
        able = leg.rank(sifted.able, call, self._rng) if len(sifted.able) > 1 else sifted.able
        usual, due = leg.usual, sifted.due
        ranked = [usual[entry.id] for entry in able]
        if due:
            ranked = [replace(card, reason="trial") if card.deployment.id in due else card for card in ranked]
        if sifted.behind:
            self._append_sagging(ranked, leg, sifted, call, now)
        return ranked

    def _append_sagging(self, ranked: list[Candidate], leg: Leg, sifted: Sifted, call: Call, now: float) -> None:
        behind = list(leg.rank(sifted.behind, call, self._rng))
        if ranked and not leg.fallback:
            reason = "sagging"
            chosen = self._trickle(behind, call, now)
            if chosen is not None:
                behind.remove(chosen)
                ranked.insert(0, Candidate(chosen, leg.target, "trickle"))
        else:
            reason = "fallback" if leg.fallback else "degraded"
        ranked += [Candidate(entry, leg.target, reason) for entry in behind]

    def _trickle(self, behind: list[Deployment], call: Call, now: float) -> Deployment | None:
        """The sagging deployment this call tries out, if any: a stream (others measure nothing) with no long prompt."""
        if not call.stream or call.needs.prompt_tokens > TRICKLE_MAX_PROMPT_TOKENS:
            return None
        last = self._trickled
        longest = min(behind, key=lambda entry: last.get(entry.id, float("-inf")))
        if now - last.get(longest.id, float("-inf")) < TRICKLE_EVERY_S:
            return None
        last[longest.id] = now
        return longest


def _legs(target: Target, targets: Mapping[str, Target]) -> Iterator[Leg]:
    """The target, then its fallbacks and theirs, each once and breadth first; each deployment where it comes first."""
    waiting, met, taken = [target], {target.name}, set[str]()
    for stop in waiting:
        fresh = {entry.id: entry for entry in stop.deployments if entry.id not in taken}
        taken.update(fresh)
        reason = stop.strategy if stop is target else "fallback"
        usual = {entry.id: Candidate(entry, stop, reason) for entry in fresh.values()}
        yield Leg(stop, tuple(fresh.values()), _strategy(stop), stop is not target, usual)
        for name in stop.fallback:
            further = targets.get(name)
            if further is not None and further.name not in met:
                met.add(further.name)
                waiting.append(further)


def _strategy(target: Target) -> Strategy:
    try:
        return STRATEGIES[target.strategy]
    except KeyError:
        known = ", ".join(STRATEGIES)
        raise ConfigError([f"{target.name}: unknown strategy {target.strategy!r}; known: {known}"]) from None
