"""The table of `make bench-micro`: what is compared with what, and when a bar holds. Nothing here is about how fast."""

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.fleet import Fleet, twin
from benchmarks.samples import catalog
from benchmarks.timing import Part, Timed, timed
from gateway.telemetry.metrics import Metrics


def test_every_part_is_timed_in_every_round_and_divided_by_its_calls() -> None:
    done = {"one": 0, "ten": 0}

    def one() -> None:
        done["one"] += 1

    def ten() -> None:
        for _ in range(10):
            one()
        done["ten"] += 1

    first, second = timed([Part("one", one), Part("ten", ten, calls=10, bar_us=1e9, beside="one")], rounds=2)
    assert done["ten"] > 0
    assert 0 < first.least_us <= first.us
    assert first.holds is None
    assert second.holds
    assert second.ratio is not None


@pytest.mark.parametrize(("us", "holds"), [(2.9, True), (3.0, False)])
def test_a_bar_holds_where_the_median_is_under_it(us: float, holds: bool) -> None:
    assert Timed("a part", us, 1.0, bar_us=3.0).holds == holds


def test_the_twin_in_prometheus_client_has_the_same_lines() -> None:
    deployments = catalog(3)
    fleet = Fleet(Metrics(deployments), deployments)
    ours = fleet.metrics.render().decode()
    theirs = generate_latest(twin(ours)).decode()

    def names(text: str) -> set[tuple[str, frozenset[tuple[str, str]]]]:
        found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        ours = (sample for sample in found if sample.name.startswith("gateway_"))
        return {(one.name, frozenset(one.labels.items())) for one in ours if not one.name.endswith("_created")}

    assert names(theirs) == names(ours)


def test_every_answer_of_the_fleet_moves_its_deployment() -> None:
    deployments = catalog(3)
    fleet = Fleet(Metrics(deployments), deployments)
    before = fleet.metrics.render()
    fleet.move()
    assert fleet.metrics.render() != before
