"""Whose speed a sample is, where another model or a lower tier was served than was asked for."""

from typing import Any

import pytest

from gateway.core.reading import Reading, Usage
from gateway.core.types import Deployment, Provider, asked_tier
from gateway.metering.book import SpeedBook
from gateway.metering.meter import Meter
from gateway.metering.served import ServedUnder
from gateway.metering.tiers import downgraded
from tests.metering.histories import answered
from tests.metering.test_book import Clock


@pytest.mark.parametrize(
    ("asked", "served", "less"),
    [
        ("fast", "priority", False),
        ("priority", "fast", False),
        ("ultrafast", "fast", True),
        ("ultrafast", "ultrafast", False),
        ("fast", "default", True),
        ("fast", "standard", True),
        ("priority", "flex", True),
        ("default", "priority", False),
        ("auto", "flex", False),
        ("fast", "a_tier_of_tomorrow", False),
        ("fast", None, False),
        (None, "flex", False),
        ("FAST", "Default", True),
    ],
)
def test_a_downgrade_is_a_lower_class_than_was_asked_for(asked: str | None, served: str | None, less: bool) -> None:
    assert downgraded(asked, served) is less


@pytest.mark.parametrize(
    ("body", "tier"),
    [({"service_tier": "flex"}, "flex"), ({"speed": "fast"}, "fast"), ({"service_tier": 3}, None), ({}, None)],
)
def test_the_tier_asked_for_is_in_the_body_that_is_sent(body: dict[str, Any], tier: str | None) -> None:
    assert asked_tier(body) == tier


def stream(*readings: Reading, **meter: Any) -> tuple[str, ...]:
    made = Meter(0.0, **meter)
    for index, reading in enumerate([Reading(content=4), *readings, Reading(finish="stop", usage=Usage(output=9))]):
        made.observe(reading, 0.1 * index)
    return made.finish("ok", 1.0).speed.marks


def test_the_meter_marks_what_was_served_instead() -> None:
    assert stream(Reading(content=4, tier="default"), asked_tier="fast") == ("downgraded",)
    assert stream(Reading(content=4, tier="priority"), asked_tier="fast") == ()
    assert stream(Reading(serving_model="other"), marks=("cold",)) == ("cold", "other_model")


PROVIDER = Provider("p", "http://127.0.0.1")


def lane(name: str, model: str = "up", **body: Any) -> Deployment:
    return Deployment(id=f"p/{name}", provider=PROVIDER, model="m", upstream_model=model, body=body)


LANES = ServedUnder([lane("standard"), lane("fast", service_tier="fast"), lane("other", "elsewhere")])


@pytest.mark.parametrize(
    ("fields", "under"),
    [
        ({"marks": ()}, "p/fast"),
        ({"marks": ("downgraded",), "served_tier": "default"}, "p/standard"),
        ({"marks": ("downgraded",), "served_tier": "flex"}, None),
        ({"marks": ("other_model",), "served_model": "elsewhere"}, "p/other"),
        ({"marks": ("other_model",), "served_model": "unheard of"}, None),
        ({"marks": (), "served_model": "up-2026-12-01"}, "p/fast"),
    ],
)
def test_a_sample_is_booked_under_what_was_served(fields: dict[str, Any], under: str | None) -> None:
    assert LANES(answered(deployment="p/fast", **fields)) == under


def test_the_speed_of_a_downgrade_is_not_that_of_the_lane_that_was_asked() -> None:
    clock = Clock()
    book = SpeedBook(clock, booked_under=LANES)
    book.record(answered(300.0, deployment="p/fast"))
    book.record(answered(50.0, deployment="p/fast", marks=("downgraded",), served_tier="default"))
    fast, standard = (book.window(name, 300, clock.now) for name in ("p/fast", "p/standard"))
    assert (fast.samples, fast.output_tps.p50) == (1, pytest.approx(300, rel=0.021))
    assert (standard.samples, standard.output_tps.p50) == (1, pytest.approx(50, rel=0.021))
    assert (fast.requests, standard.requests) == (2, 0)
