"""Answers of figures and their pieces: made once for many, kept for a while, in slices between which others run."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.api import pieces
from gateway.api.pieces import KEEP_S, LONGEST_KEEP_S, Answers, Pieces
from tests.live import run


class Clock:
    """Goes on when it is told to, and by `step` whenever it is looked at."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 1000.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Made:
    """Counts how often each piece was made."""

    def __init__(self) -> None:
        self.of: list[str] = []

    def wanted(self, *names: str) -> list[tuple[tuple[str, str], Callable[[float], Any]]]:
        return [((name, "part"), lambda now, name=name: self._make(name, now)) for name in names]

    def _make(self, name: str, now: float) -> dict[str, float]:
        self.of.append(name)
        return {name: now}


def test_a_piece_is_made_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "perf_counter", lambda: 0.0)

    async def main() -> None:
        clock, made = Clock(), Made()
        kept = Pieces(clock)
        first = await kept.collect(made.wanted("a", "b"))
        clock.now += KEEP_S / 2
        assert await kept.collect(made.wanted("b", "a")) == first[::-1]
        assert made.of == ["a", "b"]
        clock.now += KEEP_S / 2
        (later,) = await kept.collect(made.wanted("a"))
        assert (later.text, later.made) == (b'{"a":1001.0}', 1001.0)
        assert made.of == ["a", "b", "a"]

    run(main())


def test_many_who_ask_at_once_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "perf_counter", Clock(step=0.003))

    async def main() -> None:
        made = Made()
        kept = Pieces(Clock())
        names = [str(number) for number in range(50)]
        await asyncio.gather(*(kept.collect(made.wanted(*names)) for _ in range(100)))
        assert sorted(made.of) == sorted(names)

    run(main())


def test_the_event_loop_goes_on_between_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every piece takes more than a slice.
    monkeypatch.setattr(pieces, "perf_counter", Clock(step=0.003))

    async def main() -> None:
        turns = 0
        made = Made()

        async def other() -> None:
            nonlocal turns
            while len(made.of) < 20:
                turns += 1
                await asyncio.sleep(0)

        await asyncio.gather(Pieces(Clock()).collect(made.wanted(*map(str, range(20)))), other())
        assert turns >= 19

    run(main())


def test_what_took_long_is_kept_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Clock()
    monkeypatch.setattr(pieces, "perf_counter", work)

    async def main() -> None:
        kept = Pieces(Clock())
        assert kept.keep_s == KEEP_S
        work.step = 0.1  # each piece is begun and ended by one look at the clock
        await kept.collect(Made().wanted(*"abcde"))
        assert kept.keep_s == pytest.approx(5.0)
        await kept.collect(Made().wanted(*map(str, range(100))))
        assert kept.keep_s == LONGEST_KEEP_S

    run(main())


def test_no_more_than_a_limit_are_kept_and_the_oldest_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "perf_counter", lambda: 0.0)

    async def main() -> None:
        made = Made()
        kept = Pieces(Clock(), limit=2)
        for names in ("abc", "c", "b", "a"):
            await kept.collect(made.wanted(*names))
        assert "".join(made.of) == "abca"

    run(main())


def test_an_answer_is_made_once_a_second_however_many_ask() -> None:
    async def main() -> None:
        clock = Clock()
        answers = Answers(clock, limit=2)
        made: list[str] = []

        async def make(name: str) -> bytes:
            made.append(name)
            await asyncio.sleep(0)
            return name.encode()

        async def ask(*names: str) -> list[bytes]:
            return await asyncio.gather(*(answers.get(name, lambda name=name: make(name)) for name in names))

        assert await ask("a", "b", "a", "a", "b") == [b"a", b"b", b"a", b"a", b"b"]
        assert made == ["a", "b"]
        clock.now += KEEP_S
        await ask("b", "a", "c")  # and the oldest makes room
        await ask("a", "c", "b")
        assert made == ["a", "b", "b", "a", "c", "b"]

    run(main())


def test_an_answer_that_could_not_be_made_is_not_kept() -> None:
    async def main() -> None:
        answers = Answers(Clock())

        async def fails() -> bytes:
            raise ValueError("no figures")

        async def works() -> bytes:
            return b"x"

        with pytest.raises(ValueError, match="no figures"):
            await answers.get("a", fails)
        assert await answers.get("a", works) == b"x"

    run(main())
