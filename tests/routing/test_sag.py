"""The sag detector: no false alarms, a halved speed found soon, recovery seen, our own network not blamed on others."""

import heapq
import random
from collections.abc import Callable
from math import exp, log

import pytest

from gateway.core.types import BreakerPolicy, Estimate, SagPolicy, SpeedEvidence
from gateway.metering.book import SpeedBook
from gateway.routing.health import Health as Keeper
from gateway.routing.planner import TRICKLE_EVERY_S
from tests.routing.fleet import Now, ScriptedEvidence, deployment, keeper, record

NOISE = 0.25
TOKENS = 200
WARM_S = 1800.0


def steadily(_: float) -> float:
    return 1.0


def simulated(
    seed: int,
    until_s: float,
    *,
    speed: Callable[[float], float] = steadily,
    ttft: Callable[[float], float] = steadily,
    every_s: float = 1.0,
) -> list[tuple[float, str, str]]:
    """Noisy requests, one each `every_s` (while sagging the trickle at most), on the real speed book.

    `speed` and `ttft` are shares of 100 tok/s and of 0.4 s. Gives the transitions and their moments.
    """
    rng, now = random.Random(seed), Now()
    book = SpeedBook(now)
    told: list[tuple[float, str, str]] = []
    entry = deployment("p/m")
    health = Keeper(
        [entry], BreakerPolicy(), SagPolicy(), book, lambda _, state, why: told.append((now.at, state, why)), now
    )
    running: list[tuple[float, float, float, float]] = []
    at = 0.0
    while at < until_s:
        while running and running[0][0] <= at:
            now.at, begun, tps, ttft_s = heapq.heappop(running)
            ended = record(entry.id, tps, ttft_s=ttft_s, duration_s=now.at - begun)
            book.record(ended)
            health.record(ended)
        tps = 100.0 * speed(at) * exp(rng.gauss(0.0, NOISE))
        ttft_s = 0.4 * ttft(at) * exp(rng.gauss(0.0, NOISE))
        heapq.heappush(running, (at + ttft_s + TOKENS / tps, at, tps, ttft_s))
        at += max(every_s, TRICKLE_EVERY_S) if health.health(entry, at).state == "sagging" else every_s
    return told


def moments(told: list[tuple[float, str, str]], state: str, since: float) -> list[float]:
    return [at - since for at, to, _ in told if to == state and at >= since]


@pytest.mark.parametrize(("seed", "every_s"), [(1, 1.0), (2, 1.0), (3, 1.0), (4, 20.0), (5, 120.0)])
def test_a_noisy_but_steady_deployment_raises_no_alarm_in_four_hours(seed: int, every_s: float) -> None:
    told = simulated(seed, 4 * 3600.0, every_s=every_s)
    assert [(state, why) for _, state, why in told] == [("ok", "measured")]


@pytest.mark.parametrize("seed", range(20))
def test_a_halved_speed_is_found_in_under_25_seconds(seed: int) -> None:
    told = simulated(seed, WARM_S + 60.0, speed=lambda at: 1.0 if at < WARM_S else 0.5)
    found = moments(told, "sagging", WARM_S)
    assert len(found) == 1
    assert found[0] < 25.0


@pytest.mark.parametrize("seed", range(5))
def test_it_is_found_as_soon_by_a_baseline_only_a_minute_old(seed: int) -> None:
    told = simulated(seed, 160.0, speed=lambda at: 1.0 if at < 60.0 else 0.5)
    assert moments(told, "sagging", 60.0)[0] < 30.0


@pytest.mark.parametrize("seed", range(5))
def test_a_speed_that_comes_back_is_seen_through_the_trickle(seed: int) -> None:
    told = simulated(seed, WARM_S + 900.0, speed=lambda at: 0.5 if WARM_S <= at < WARM_S + 300.0 else 1.0)
    assert len(moments(told, "sagging", WARM_S)) == 1
    assert 0.0 < moments(told, "ok", WARM_S + 300.0)[0] < 180.0


def test_a_speed_a_little_lower_is_no_sag() -> None:
    told = simulated(1, WARM_S + 1800.0, speed=lambda at: 1.0 if at < WARM_S else 0.88)
    assert moments(told, "sagging", WARM_S) == []


def test_a_level_held_for_half_an_hour_becomes_the_new_normal_and_can_sag_again() -> None:
    told = simulated(1, WARM_S + 9000.0, speed=lambda at: 1.0 if at < WARM_S else 0.5 if at < WARM_S + 7200.0 else 0.25)
    after = [(state, why) for at, state, why in told if at >= WARM_S]
    assert after[:3] == [("sagging", "speed"), ("ok", "new_baseline"), ("sagging", "speed")]
    assert moments(told, "sagging", WARM_S + 7200.0)[0] < 40.0


@pytest.mark.parametrize("seed", range(5))
def test_first_tokens_that_take_three_times_as_long_are_a_sag_and_their_return_is_seen(seed: int) -> None:
    told = simulated(seed, WARM_S + 900.0, ttft=lambda at: 3.0 if WARM_S <= at < WARM_S + 300.0 else 1.0)
    after = [(state, why) for at, state, why in told if at >= WARM_S]
    assert after == [("sagging", "ttft"), ("ok", "recovered")]
    assert moments(told, "sagging", WARM_S)[0] < 25.0
    assert moments(told, "ok", WARM_S + 300.0)[0] < 180.0


def test_first_tokens_that_stay_late_are_learnt_in_the_end() -> None:
    told = simulated(1, WARM_S + 7200.0, ttft=lambda at: 1.0 if at < WARM_S else 3.0)
    after = [(state, why) for at, state, why in told if at >= WARM_S]
    assert after == [("sagging", "ttft"), ("ok", "recovered")]
    assert 1800.0 < moments(told, "ok", WARM_S)[0] < 5400.0


# -- the rules one by one, on evidence as told

NORMAL = Estimate(log(100.0), 0.01, 500.0)


def speed(tps: float, *, error: float = 0.02, count: float = 20.0) -> SpeedEvidence:
    return SpeedEvidence(Estimate(log(tps), error, count), NORMAL)


class Bench:
    """Deployments `a/m`, `b/m`, … under one keeper, fed one sample at a time."""

    def __init__(self, *ids: str) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.now, self.evidence = Now(1000.0), ScriptedEvidence()
        self.entries = {name: deployment(name) for name in ids or ("a/m",)}
        self.keeper = keeper(
            self.entries.values(),
            evidence=self.evidence,
            tell=lambda *news: self.told.append(news),
            clock=self.now,
        )
        for name in self.entries:
            self.feed(100.0, speed(100.0), name=name)
        self.told.clear()

    def feed(
        self, tps: float | None, says: SpeedEvidence, *, name: str = "a/m", times: int = 3, duration_s: float = 0.5
    ) -> None:
        self.evidence.says[name] = says
        for _ in range(times):
            self.now.at += 1.0
            self.keeper.record(record(name, tps, duration_s=duration_s))

    def state(self, name: str = "a/m") -> str:
        return self.keeper.health(self.entries[name], self.now.at).state

    def sag(self, name: str = "a/m") -> None:
        self.feed(50.0, speed(50.0), name=name, times=5)


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (speed(50.0), "sagging"),
        (speed(79.0), "ok"),  # under 80 %, and not with confidence
        (speed(50.0, error=0.2), "ok"),
        (speed(50.0, count=2.9), "ok"),
        (speed(65.0, error=0.0, count=3.0), "ok"),  # three samples that happen to agree prove little
        (SpeedEvidence(Estimate(log(50.0), 0.02, 20.0), None), "ok"),
        (SpeedEvidence(Estimate(log(50.0), 0.02, 20.0), Estimate(log(100.0), 0.01, 7.0)), "ok"),
        (SpeedEvidence(Estimate(float("nan"), 0.02, 20.0), NORMAL), "ok"),
        (SpeedEvidence(Estimate(log(50.0), 0.02, float("nan")), NORMAL), "ok"),
        (SpeedEvidence(ttft=Estimate(0.6, 0.05, 20.0)), "sagging"),
        (SpeedEvidence(ttft=Estimate(0.6, 0.09, 20.0)), "ok"),
        (SpeedEvidence(ttft=Estimate(0.6, 0.0, 2.0)), "ok"),
    ],
)
def test_slow_is_said_only_with_confidence(evidence: SpeedEvidence, state: str) -> None:
    bench = Bench()
    bench.feed(50.0, evidence, times=5)
    assert bench.state() == state


def test_the_latest_samples_must_agree_with_the_window() -> None:
    bench = Bench()
    bench.feed(100.0, speed(50.0), times=10)
    assert bench.state() == "ok"


@pytest.mark.parametrize("quality", ["estimate", "burst", "truncated", None])
def test_a_sample_of_poor_quality_is_no_sample(quality: str) -> None:
    bench = Bench()
    bench.evidence.says["a/m"] = speed(50.0)
    for _ in range(10):
        bench.keeper.record(record("a/m", 50.0, quality=quality))
    assert bench.state() == "ok"


def test_a_rate_by_the_servers_own_clock_is_a_sample() -> None:
    bench = Bench()
    bench.evidence.says["a/m"] = speed(50.0)
    for _ in range(5):
        bench.keeper.record(record("a/m", 50.0, quality="burst", source="server"))
    assert bench.state() == "sagging"


def test_the_baseline_is_frozen_while_sagging() -> None:
    bench = Bench()
    bench.sag()
    assert bench.evidence.frozen == {"a/m": True}
    bench.now.at += 60.0
    bench.feed(100.0, speed(100.0))
    assert bench.state() == "ok"
    assert bench.evidence.frozen == {"a/m": False}


def test_recovery_waits_for_the_dwell() -> None:
    bench = Bench()
    bench.sag()
    bench.feed(100.0, speed(100.0), times=20)
    assert bench.state() == "sagging"
    bench.feed(100.0, speed(100.0), times=15)
    assert bench.state() == "ok"
    assert bench.told == [("a/m", "sagging", "speed"), ("a/m", "ok", "recovered")]


def test_good_samples_must_come_in_a_row() -> None:
    bench = Bench()
    bench.sag()
    bench.now.at += 60.0
    for _ in range(5):
        bench.feed(100.0, speed(60.0), times=2)
        bench.feed(84.0, speed(60.0), times=1)
    assert bench.state() == "sagging"
    bench.feed(86.0, speed(60.0), times=3)
    assert bench.state() == "ok"


def test_streams_begun_before_the_sag_do_not_end_it() -> None:
    bench = Bench()
    bench.sag()
    bench.now.at += 60.0
    bench.feed(100.0, speed(100.0), times=10, duration_s=300.0)
    assert bench.state() == "sagging"


def test_after_a_recovery_the_slow_rest_of_the_window_is_no_relapse() -> None:
    bench = Bench()
    bench.sag()
    bench.now.at += 60.0
    bench.feed(100.0, speed(60.0), times=20)
    assert bench.state() == "ok"


def test_each_relapse_doubles_the_dwell_up_to_five_minutes() -> None:
    bench, dwells = Bench(), []
    for _ in range(6):
        bench.sag()
        until = bench.keeper.health(bench.entries["a/m"], bench.now.at).until
        began = bench.now.at - 2.0  # the third of the five samples settled it
        assert until is not None
        dwells.append(until - began)
        bench.now.at = until
        bench.feed(100.0, speed(100.0))
    assert dwells[1:] == [60.0, 120.0, 240.0, 300.0, 300.0]


def test_a_sag_long_after_the_last_begins_with_the_short_dwell() -> None:
    bench = Bench()
    bench.sag()
    bench.now.at += 60.0
    bench.feed(100.0, speed(100.0))
    bench.now.at += 3600.0
    bench.sag()
    until = bench.keeper.health(bench.entries["a/m"], bench.now.at).until
    assert until is not None
    assert until - bench.now.at <= 30.0


def test_late_first_tokens_are_well_again_when_the_evidence_says_so() -> None:
    bench = Bench()
    bench.feed(100.0, SpeedEvidence(ttft=Estimate(0.7, 0.05, 20.0)), times=1)
    assert bench.told == [("a/m", "sagging", "ttft")]
    bench.now.at += 60.0
    bench.feed(100.0, SpeedEvidence(ttft=Estimate(0.45, 0.05, 20.0)), times=5)
    assert bench.state() == "sagging"
    bench.feed(None, SpeedEvidence(ttft=Estimate(0.1, 0.05, 20.0)), times=3)
    assert bench.state() == "ok"


def test_when_most_of_two_providers_turn_slow_at_once_the_states_are_held() -> None:
    bench = Bench("a/m", "b/m", "c/m")
    bench.sag("a/m")
    bench.sag("b/m")
    bench.sag("c/m")
    assert [bench.state(name) for name in ("a/m", "b/m", "c/m")] == ["sagging", "ok", "ok"]
    assert bench.told == [
        ("a/m", "sagging", "speed"),
        ("b/m", "ok", "own_network"),
        ("c/m", "ok", "own_network"),
    ]


def test_while_held_the_baseline_learns_nothing_and_afterwards_it_does_again() -> None:
    bench = Bench("a/m", "b/m")
    bench.sag("a/m")
    bench.sag("b/m")
    assert bench.state("b/m") == "ok"
    assert bench.evidence.frozen["b/m"] is True
    bench.feed(100.0, speed(100.0), name="b/m", times=5)
    assert bench.evidence.frozen["b/m"] is False


def test_a_mere_suspicion_keeps_the_baseline_from_learning_for_two_minutes_at_most() -> None:
    bench = Bench()
    bench.feed(70.0, speed(79.0), times=5)
    assert bench.state() == "ok"
    assert bench.evidence.frozen == {"a/m": True}
    bench.now.at += 120.0
    bench.feed(70.0, speed(79.0), times=1)
    assert bench.evidence.frozen == {"a/m": False}


def test_a_suspicion_that_passes_lets_the_baseline_learn_again() -> None:
    bench = Bench()
    bench.feed(70.0, speed(79.0), times=5)
    bench.feed(100.0, speed(90.0), times=3)
    assert bench.evidence.frozen == {"a/m": False}


def test_one_provider_alone_is_blamed_however_many_of_its_deployments_sag() -> None:
    bench = Bench("a/1", "a/2", "a/3", "b/1")
    for name in ("a/1", "a/2", "a/3"):
        bench.sag(name)
    assert [bench.state(name) for name in ("a/1", "a/2", "a/3", "b/1")] == ["sagging", "sagging", "sagging", "ok"]


def test_a_deployment_not_heard_of_for_long_has_no_say_in_it() -> None:
    bench = Bench("a/m", "b/m", "c/m", "d/m", "e/m")
    bench.now.at += 700.0
    bench.feed(100.0, speed(100.0), name="c/m")
    bench.sag("a/m")
    bench.sag("b/m")
    assert bench.state("b/m") == "ok"
    assert bench.told[-1] == ("b/m", "ok", "own_network")


def test_deployments_that_turn_slow_one_after_another_are_not_our_network() -> None:
    bench = Bench("a/m", "b/m", "c/m")
    for name in ("a/m", "b/m", "c/m"):
        bench.sag(name)
        bench.now.at += 130.0
        for other in bench.entries:
            if bench.state(other) == "ok":
                bench.feed(100.0, speed(100.0), name=other)
    assert {bench.state(name) for name in bench.entries} == {"sagging"}


def test_a_reset_ends_a_sag() -> None:
    bench = Bench()
    bench.sag()
    bench.keeper.reset("a/m")
    assert bench.state() == "ok"
    assert bench.evidence.frozen == {"a/m": False}
