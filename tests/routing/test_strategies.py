"""Strategies: the table, and what each promises."""

import pkgutil
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.types import Deployment
from gateway.routing import strategies
from gateway.routing.strategies import STRATEGIES
from tests.routing.fleet import PATIENT, call, deployment, target


def ranked(name: str, group: list[Deployment], seed: int = 0) -> list[str]:
    asked = call(target("model", group, strategy=name))
    return [entry.id for entry in STRATEGIES[name](group, asked, random.Random(seed))]


def test_each_strategy_file_has_a_line_in_the_table() -> None:
    files = {module.name for module in pkgutil.iter_modules(strategies.__path__)} - {"contract"}
    assert files == set(STRATEGIES)


@PATIENT
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.integers(0, 2**32), st.sampled_from(sorted(STRATEGIES)))
def test_a_strategy_loses_none_and_invents_none(weights: list[float], seed: int, name: str) -> None:
    group = [deployment(f"p/{index}", weight=weight) for index, weight in enumerate(weights)]
    before = list(group)
    assert sorted(ranked(name, group, seed)) == sorted(entry.id for entry in group)
    assert group == before


def test_order_keeps_the_listing() -> None:
    assert ranked("order", [deployment("p/b"), deployment("p/a")]) == ["p/b", "p/a"]


def test_weighted_leads_in_proportion_to_the_weights() -> None:
    group = [deployment("p/one", weight=1), deployment("p/three", weight=3)]
    leads = Counter(ranked("weighted", group, seed)[0] for seed in range(4000))
    assert leads["p/three"] / 4000 == pytest.approx(0.75, abs=0.03)


def test_a_weight_of_zero_comes_after_the_others_as_listed() -> None:
    group = [deployment("p/x", weight=0), deployment("p/y", weight=0), deployment("p/z", weight=1e-6)]
    assert {tuple(ranked("weighted", group, seed)) for seed in range(50)} == {("p/z", "p/x", "p/y")}
