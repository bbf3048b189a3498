"""Samples of streams that still run: when they are taken, what replaces them, and what they are worth."""

from dataclasses import dataclass
from math import exp, log

import pytest

from gateway.core.types import Progress
from gateway.metering.book import SpeedBook
from tests.metering.histories import answered
from tests.metering.test_book import Clock


@dataclass
class ScriptedMeter:
    """Says how far it is as told, and how often it was asked."""

    says: Progress
    asked: int = 0

    def progress(self, now: float) -> Progress:
        self.asked += 1
        return self.says


def at_speed(tps: float, running_s: float = 4.0, **more: object) -> Progress:
    return Progress(elapsed_s=running_s + 0.3, first_token_s=0.3, tokens=tps * running_s, tps=tps, **more)  # type: ignore[arg-type]


class Scene:
    """A deployment that usually does 100 tok/s, with its first token after 0.3 s and four characters to a token."""

    def __init__(self, finished: int = 60, chars: tuple[int, ...] = (400,)) -> None:
        self.clock = Clock()
        self.book = SpeedBook(self.clock)
        for index in range(finished):
            self.clock.now += 1
            self.book.record(answered(chars=chars[index % len(chars)]))
        self.clock.now += 100  # what ended is out of the short memories

    def began(self, says: Progress) -> ScriptedMeter:
        meter = ScriptedMeter(says)
        self.book.began("p/m", meter)  # type: ignore[arg-type]
        return meter

    def ended(self, meter: ScriptedMeter) -> None:
        self.book.ended("p/m", meter)  # type: ignore[arg-type]

    def look(self, after_s: float = 1.0) -> tuple[float, ...]:
        """The interim speeds in tok/s, by the evidence."""
        self.clock.now += after_s
        self.book.look(self.clock.now)
        return tuple(exp(value) for value in self.book.evidence("p/m", self.clock.now).interim)


def test_a_running_stream_is_one_sample_and_its_record_takes_the_place() -> None:
    scene = Scene()
    meter = scene.began(at_speed(20.0))
    for _ in range(10):
        assert scene.look() == (pytest.approx(20.0),)
    before = scene.book.evidence("p/m", scene.clock.now).speed
    scene.ended(meter)
    assert scene.look(0.0) == ()
    scene.book.record(answered(20.0))
    after = scene.book.evidence("p/m", scene.clock.now).speed
    assert before is not None
    assert after is not None
    # The final sample weighs more than the interim one, and is the only one.
    assert after.mean < before.mean
    assert after.count <= before.count + 1


def test_a_sample_is_renewed_every_five_seconds() -> None:
    scene = Scene()
    meter = scene.began(at_speed(20.0))
    assert scene.look() == (pytest.approx(20.0),)
    meter.says = at_speed(10.0, 6.0)
    assert scene.look(3.0) == (pytest.approx(20.0),)
    assert scene.look(3.0) == (pytest.approx(10.0),)


@pytest.mark.parametrize(
    "says",
    [
        at_speed(20.0, 1.5),
        at_speed(20.0, resting=True),
        Progress(4.0, 0.3, tokens=3.0, tps=1.0),
        Progress(4.0, 0.3, tokens=300.0, tps=None),
    ],
    ids=["its first seconds", "thinking in silence", "a few words", "no window"],
)
def test_a_stream_of_which_nothing_can_be_said_yet_says_nothing(says: Progress) -> None:
    scene = Scene()
    scene.began(says)
    assert scene.look() == ()


def test_a_stream_that_begins_to_rest_takes_its_sample_back() -> None:
    scene = Scene()
    meter = scene.began(at_speed(20.0))
    assert len(scene.look()) == 1
    meter.says = at_speed(20.0, 5.0, resting=True)
    assert scene.look() == ()


def test_interim_samples_teach_the_baseline_nothing() -> None:
    scene = Scene()
    before = scene.book.evidence("p/m", scene.clock.now).baseline
    for _ in range(20):
        scene.began(at_speed(20.0))
    scene.look()
    assert scene.book.evidence("p/m", scene.clock.now).baseline == before


def test_an_estimate_that_was_often_wrong_is_taken_for_the_nearest_it_can_be() -> None:
    exact, loose, unknown = Scene(), Scene(chars=(200, 800)), Scene(finished=4)
    for scene in (exact, loose, unknown):
        scene.began(at_speed(50.0))
    assert exact.look() == (pytest.approx(50.0, rel=0.02),)
    assert loose.look() == (pytest.approx(100.0, rel=0.02),)
    assert unknown.look() == ()


def test_a_wait_longer_than_expected_is_a_late_first_token_while_it_lasts() -> None:
    scene = Scene()
    meters = [scene.began(Progress(0.2, prompt_tokens=1000)) for _ in range(12)]
    scene.look()
    shorter = scene.book.evidence("p/m", scene.clock.now).ttft
    for meter in meters:
        meter.says = Progress(3.0, prompt_tokens=1000)
    scene.look()
    late = scene.book.evidence("p/m", scene.clock.now).ttft
    assert shorter is not None
    assert late is not None
    assert shorter.mean == pytest.approx(0, abs=0.05)
    assert late.mean == pytest.approx(log(10), rel=0.3)
    for meter in meters:
        meter.says = at_speed(100.0)
    scene.look()
    assert scene.book.evidence("p/m", scene.clock.now).ttft == pytest.approx(shorter)


def test_only_streams_that_run_are_looked_at_and_only_news_is_told() -> None:
    scene = Scene()
    meter = scene.began(at_speed(20.0))
    assert scene.book.look(scene.clock.now) == ["p/m"]
    assert scene.book.look(scene.clock.now + 1) == []
    assert scene.book.look(scene.clock.now + 6) == ["p/m"]
    scene.ended(meter)
    scene.ended(meter)
    asked = meter.asked
    assert scene.book.look(scene.clock.now) == []
    assert meter.asked == asked
