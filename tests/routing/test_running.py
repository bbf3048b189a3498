"""Running streams as evidence: a crawl or a silence is seen before any stream ends, and noise raises no alarm."""

import pytest

from tests.routing.running import Traffic, watched

WARM_S = 900.0


def sagged(told: list[tuple[float, str, str]]) -> list[tuple[float, str]]:
    return [(at - WARM_S, why) for at, state, why in told if state == "sagging"]


def from_then_on(share: float):  # type: ignore[no-untyped-def]
    return lambda at: 1.0 if at < WARM_S else share


@pytest.mark.parametrize(
    ("seed", "traffic"),
    [(1, Traffic()), (2, Traffic(every_s=5.0, length=3000)), (3, Traffic(every_s=20.0)), (4, Traffic(text=0.4))],
    ids=["busy", "long answers", "rare", "texts of all kinds"],
)
def test_noisy_but_steady_streams_raise_no_alarm(seed: int, traffic: Traffic) -> None:
    told = watched(seed, 3 * 3600.0, traffic)
    assert [(state, why) for _, state, why in told] == [("ok", "measured")]


@pytest.mark.parametrize("seed", range(5))
def test_a_halved_speed_is_found_sooner_than_by_what_has_ended(seed: int) -> None:
    ((found, why),) = sagged(watched(seed, WARM_S + 60.0, speed=from_then_on(0.5)))
    ((without, _),) = sagged(watched(seed, WARM_S + 60.0, speed=from_then_on(0.5), ticks=False))
    assert why == "speed"
    assert 5.0 < found < min(20.0, without)


@pytest.mark.parametrize("seed", range(5))
def test_a_crawl_is_found_before_any_stream_has_ended(seed: int) -> None:
    ((found, why),) = sagged(watched(seed, WARM_S + 60.0, speed=from_then_on(0.1)))
    assert why == "speed"
    assert found < 12.0


@pytest.mark.parametrize("seed", range(5))
def test_streams_without_a_token_are_late_before_they_end(seed: int) -> None:
    told = watched(seed, WARM_S + 60.0, ttft=from_then_on(1e9))
    ((found, why),) = sagged(told)
    assert why == "ttft"
    assert found < 20.0


@pytest.mark.parametrize("share", [0.4, 0.5, 2.0])
def test_text_with_other_characters_to_a_token_is_no_other_speed(share: float) -> None:
    assert sagged(watched(1, WARM_S + 1800.0, text=from_then_on(share))) == []
