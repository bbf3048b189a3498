"""Plans: the filters in their order, health, fallbacks."""

import random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import ConfigError
from gateway.core.ports import Planner
from gateway.core.types import Call, Deployment, Health, Needs, Plan, Target
from gateway.routing.filters import TRIAL_IN_FLIGHT
from gateway.routing.planner import TRICKLE_EVERY_S, RoutePlanner
from tests.routing.fleet import PATIENT, ScriptedHealth, call, catalog, deployment, target

A, B, C = deployment("a/m"), deployment("b/m"), deployment("c/m")
SAGGING, DISABLED = Health("sagging", "speed", 30.0), Health("disabled")


def cooling(until: float) -> Health:
    return Health("cooling", "server_error", until)


def planner(*targets: Target, states: dict[str, Health] | None = None) -> RoutePlanner:
    return RoutePlanner(catalog(*targets), ScriptedHealth(states), random.Random(1))


def plan(deployments: list[Deployment], states: dict[str, Health] | None = None, needs: Needs | None = None) -> Plan:
    asked = target("model", deployments)
    return planner(asked, states=states).plan(call(asked, needs), 0.0)


def shown(made: Plan) -> list[tuple[str, str]]:
    return [(candidate.deployment.id, candidate.reason) for candidate in made.candidates]


def left_out(made: Plan) -> list[tuple[str, str]]:
    return [(entry.deployment.id, entry.reason) for entry in made.dropped]


def test_it_is_a_planner() -> None:
    asked: Planner = planner(target("model", [A]))
    assert asked.plan(call(target("model", [A])), 0.0).candidates


def test_healthy_deployments_stand_in_the_strategys_order() -> None:
    assert shown(plan([B, A, C])) == [("b/m", "order"), ("a/m", "order"), ("c/m", "order")]


def test_a_single_deployment_is_the_only_choice() -> None:
    assert shown(plan([A])) == [("a/m", "only_choice")]


def test_a_deployment_listed_twice_stands_once() -> None:
    assert shown(plan([A, A, B])) == [("a/m", "order"), ("b/m", "order")]


def test_a_disabled_deployment_is_dropped() -> None:
    made = plan([A, B], {"a/m": DISABLED})
    assert shown(made) == [("b/m", "only_choice")]
    assert left_out(made) == [("a/m", "disabled")]


def test_policy_alone_can_empty_a_plan() -> None:
    made = plan([A], {"a/m": DISABLED})
    assert made.candidates == ()
    assert left_out(made) == [("a/m", "disabled")]


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (Needs(prompt_tokens=1001), "context"),
        (Needs(prompt_tokens=900, max_tokens=101), "context"),
        (Needs(prompt_tokens=900, max_tokens=100), None),
        (Needs(max_tokens=501), "max_output"),
        (Needs(max_tokens=500), None),
        (Needs(tools=True), None),
        (Needs(vision=True), "vision"),
        (Needs(json_schema=True), "json_schema"),
        (Needs(reasoning=True, tools=True), "reasoning"),
    ],
)
def test_what_a_deployment_lacks_drops_it_and_says_what(needs: Needs, reason: str | None) -> None:
    narrow = deployment("narrow/m", context=1000, max_output=500, features=["tools"])
    made = plan([narrow, A], needs=needs)
    assert left_out(made) == ([] if reason is None else [("narrow/m", reason)])
    assert ("a/m" in dict(shown(made))) is True


def test_features_that_are_not_stated_are_taken_for_granted() -> None:
    everything = Needs(prompt_tokens=10**9, tools=True, vision=True, json_schema=True, reasoning=True)
    assert shown(plan([A], needs=everything)) == [("a/m", "only_choice")]


def test_a_cooling_deployment_leaves_the_plan() -> None:
    made = plan([A, B, C], {"a/m": cooling(9.0)})
    assert shown(made) == [("b/m", "order"), ("c/m", "order")]
    assert left_out(made) == [("a/m", "cooling")]


def test_when_all_are_cooling_the_one_that_ends_first_leads() -> None:
    made = plan([A, B, C], {"a/m": cooling(9.0), "b/m": cooling(3.0), "c/m": cooling(5.0)})
    assert shown(made) == [("b/m", "last_resort"), ("c/m", "last_resort"), ("a/m", "last_resort")]
    assert made.dropped == ()


def test_one_that_cannot_serve_the_call_does_not_come_back_as_a_last_resort() -> None:
    blind = deployment("blind/m", features=[])
    states = {"blind/m": cooling(1.0), "a/m": cooling(5.0)}
    assert shown(plan([blind, A], states, Needs(vision=True))) == [("a/m", "last_resort")]


def test_a_half_open_deployment_takes_its_place_as_a_trial() -> None:
    made = plan([A, B], {"a/m": Health("probing", "trial_due")})
    assert shown(made) == [("a/m", "trial"), ("b/m", "order")]


def test_one_whose_trial_is_in_flight_counts_as_cooling() -> None:
    made = plan([A, B], {"a/m": Health("probing", TRIAL_IN_FLIGHT)})
    assert shown(made) == [("b/m", "only_choice")]


def test_a_sagging_deployment_goes_behind_but_never_out() -> None:
    states = {"a/m": SAGGING}
    assert shown(plan([A, B], states, Needs(prompt_tokens=9000))) == [("b/m", "order"), ("a/m", "sagging")]
    assert shown(plan([A], states)) == [("a/m", "degraded")]


def test_a_sagging_deployment_keeps_a_trickle() -> None:
    asked = target("model", [A, B])
    made = planner(asked, states={"b/m": SAGGING})
    leads = [made.plan(call(asked), at * 0.5).candidates[0] for at in range(60)]
    tries = [at * 0.5 for at, candidate in enumerate(leads) if candidate.reason == "trickle"]
    assert tries == [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]
    assert {candidate.deployment.id for candidate in leads if candidate.reason == "trickle"} == {"b/m"}


def test_the_trickle_goes_round_among_those_that_sag() -> None:
    asked = target("model", [A, B, C])
    made = planner(asked, states={"b/m": SAGGING, "c/m": SAGGING})
    first, second, third = (made.plan(call(asked), at) for at in (0.0, 0.1, 0.2))
    assert shown(first) == [("b/m", "trickle"), ("a/m", "order"), ("c/m", "sagging")]
    assert shown(second) == [("c/m", "trickle"), ("a/m", "order"), ("b/m", "sagging")]
    assert shown(third)[0] == ("a/m", "order")


@pytest.mark.parametrize(
    ("needs", "stream"), [(Needs(prompt_tokens=8001), True), (Needs(), False)], ids=["long prompt", "not streamed"]
)
def test_a_call_that_would_suffer_or_measure_nothing_is_no_trickle(needs: Needs, stream: bool) -> None:
    asked = target("model", [A, B])
    made = planner(asked, states={"a/m": SAGGING}).plan(call(asked, needs, stream=stream), 0.0)
    assert shown(made) == [("b/m", "order"), ("a/m", "sagging")]


def test_fallback_targets_follow_transitively_and_once() -> None:
    first = target("first", [A], fallback=["second", "missing"])
    second = target("second", [A, B], fallback=["third", "first"])
    third = target("third", [C, B], fallback=["second"])
    made = planner(first, second, third).plan(call(first), 0.0)
    assert shown(made) == [("a/m", "order"), ("b/m", "fallback"), ("c/m", "fallback")]
    assert [candidate.target.name for candidate in made.candidates] == ["first", "second", "third"]


def test_a_fallback_leads_while_everything_before_it_is_cooling() -> None:
    first, second = target("first", [A], fallback=["second"]), target("second", [B])
    made = planner(first, second, states={"a/m": cooling(5.0)}).plan(call(first), 0.0)
    assert shown(made) == [("b/m", "fallback")]
    assert left_out(made) == [("a/m", "cooling")]


def test_a_sagging_deployment_of_the_name_asked_for_stands_before_a_fallback() -> None:
    first, second = target("first", [A], fallback=["second"]), target("second", [B])
    made = planner(first, second, states={"a/m": SAGGING}).plan(call(first), 0.0)
    assert shown(made) == [("a/m", "degraded"), ("b/m", "fallback")]


def test_a_sagging_fallback_gets_no_trickle() -> None:
    first, second = target("first", [A], fallback=["second"]), target("second", [B, C])
    made = planner(first, second, states={"c/m": SAGGING}).plan(call(first), 0.0)
    assert shown(made) == [("a/m", "order"), ("b/m", "fallback"), ("c/m", "fallback")]


def test_an_unknown_strategy_is_told_at_the_start() -> None:
    with pytest.raises(ConfigError, match="model: unknown strategy 'psychic'; known: order, weighted"):
        planner(target("model", [A], strategy="psychic"))


def test_a_target_made_for_one_call_is_planned_as_it_is() -> None:
    made = planner(target("model", [A]))
    assert shown(made.plan(call(target("model", [B, C])), 0.0)) == [("b/m", "order"), ("c/m", "order")]


StateName = Literal["ok", "unmeasured", "sagging", "probing", "cooling"]
STATES = st.builds(
    Health,
    st.sampled_from(["ok", "unmeasured", "sagging", "probing", "cooling"]),
    st.sampled_from([None, "speed", TRIAL_IN_FLIGHT]),
    st.none() | st.floats(0, 1e6),
)


def _plan_of(states: list[Health], fallbacks: list[list[int]], strategy: str) -> tuple[list[Deployment], Plan]:
    """Three targets that share the deployments and name each other as fallbacks."""
    entries = [deployment(f"p{index}/m") for index in range(len(states))]
    names = ["t0", "t1", "t2"]
    targets = [
        target(name, entries[at::2] + entries[:at], strategy=strategy, fallback=[names[to] for to in fallbacks[at]])
        for at, name in enumerate(names)
    ]
    made = planner(*targets, states={entry.id: state for entry, state in zip(entries, states, strict=True)})
    asked: Call = call(targets[0])
    return entries, made.plan(asked, 100.0)


LINKS = st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=3, max_size=3)


@PATIENT
@given(st.lists(STATES, min_size=1, max_size=8), LINKS, st.sampled_from(["order", "weighted"]))
def test_no_state_of_health_empties_a_plan_or_doubles_a_deployment(
    states: list[Health], fallbacks: list[list[int]], strategy: str
) -> None:
    _, made = _plan_of(states, fallbacks, strategy)
    ids = [candidate.deployment.id for candidate in made.candidates]
    assert ids
    out = [entry.deployment.id for entry in made.dropped]
    assert len(ids + out) == len(set(ids + out))


def test_the_trickle_is_rarer_than_what_the_dwell_can_bear() -> None:
    assert TRICKLE_EVERY_S * 3 <= 30.0
