"""Planned schedules, without a clock: when each token is due, and what tearing and holding back leave intact."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.types import Json
from gateway.simulator import Load, Reasoning, Script, Ttft, Window
from gateway.simulator.chat import read_chat
from gateway.simulator.connection import Reply, Request
from gateway.simulator.faults import SlowAfter, Split, Stall
from gateway.simulator.pace import Pace, first_token_after
from gateway.simulator.schedule import next_change, script_at
from gateway.simulator.service import Service
from gateway.simulator.text import Words
from gateway.simulator.timeline import Ending, Step, Timeline, buffered, split
from gateway.simulator.truth import Stats

BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}'


def planned(script: Script, stream: bool = True) -> list[Step]:
    body = BODY if stream else BODY.replace(b"true", b"false")
    request = Request("POST", "/v1/chat/completions", (), body, 0.0, True, True)
    return list(Service(lambda: script, Stats(), _no_control).reply(request).timeline)


def _no_control(request: Request) -> Reply:
    raise AssertionError(request)


def due(script: Script) -> list[float]:
    return [at for at, _, tokens in planned(script) if tokens]


@given(
    ttft=st.floats(0, 5),
    tps=st.floats(0.5, 5000),
    per_chunk=st.integers(1, 9),
    tokens=st.integers(1, 60),
)
def test_a_chunk_is_due_when_its_last_token_is_made(ttft: float, tps: float, per_chunk: int, tokens: int) -> None:
    script = Script(ttft=ttft, tps=tps, tokens_per_chunk=per_chunk, output_tokens=tokens)
    first = min(per_chunk, tokens)
    ends = [min(start + per_chunk, tokens) for start in range(0, tokens, per_chunk)]
    assert due(script) == pytest.approx([ttft + (end - first) / tps for end in ends])


def test_the_head_and_the_role_chunk_leave_at_their_share_of_the_ttft() -> None:
    steps = planned(Script(ttft=2.0, head_at=0.25))
    assert [(at, tokens) for at, _, tokens in steps[:3]] == [(0.5, 0), (0.5, 0), (2.0, 1)]


def test_a_stall_shifts_the_rest_and_a_crawl_slows_it() -> None:
    script = Script(ttft=1, tps=10, output_tokens=4)
    stalled = replace(script, faults=(Stall(after_tokens=2, seconds=5),))
    crawling = replace(script, faults=(SlowAfter(after_tokens=2, tps=1),))
    assert due(stalled) == pytest.approx([1, 1.1, 6.2, 6.3])
    assert due(crawling) == pytest.approx([1, 1.1, 2.1, 3.1])


def test_a_fault_shortens_the_chunk_it_falls_into() -> None:
    script = Script(ttft=0, tps=10, tokens_per_chunk=4, output_tokens=10, faults=(Stall(after_tokens=6, seconds=1),))
    assert [tokens for _, _, tokens in planned(script) if tokens] == [4, 2, 4]


@pytest.mark.parametrize(("streamed", "dues"), [(True, [1, 2, 3, 3.5, 4]), (False, [4, 4.5])])
def test_reasoning_takes_its_own_seconds(streamed: bool, dues: list[float]) -> None:
    thought = Reasoning(tokens=3, seconds=3, streamed=streamed)
    assert due(Script(ttft=1, tps=2, output_tokens=2, reasoning=thought)) == pytest.approx(dues)


def test_an_answer_that_is_not_streamed_comes_when_its_last_token_is_made() -> None:
    steps = planned(Script(ttft=1, tps=10, output_tokens=11), stream=False)
    assert [(at, tokens) for at, _, tokens in steps] == [(2.0, 11)]


def test_ttft_grows_with_the_prompt_and_varies_about_its_median() -> None:
    assert first_token_after(Ttft(0.1, per_1k_prompt_tokens=0.5), 3000, Random(1)) == pytest.approx(1.6)
    drawn = sorted(first_token_after(Ttft(0.1, sigma=0.5), 0, Random(seed)) for seed in range(501))
    assert 0.08 < drawn[250] < 0.12
    assert drawn[0] < 0.05 < 0.2 < drawn[-1]


def test_load_divides_the_speed() -> None:
    script = Script(tps=100, load=Load(k=4))
    assert Pace(lambda: script, lambda: 4, Random(1)).gap(1) == pytest.approx(0.02)


def test_jitter_keeps_the_mean_and_never_goes_back_in_time() -> None:
    pace = Pace(lambda: Script(tps=100, jitter=0.3), lambda: 1, Random(1))
    gaps = [pace.gap(1) for _ in range(2000)]
    assert min(gaps) >= 0
    assert sum(gaps) / 2000 == pytest.approx(0.01, rel=0.05)
    assert max(gaps) > 0.015


SAG = Window(at=25, for_=20, every=60, set_={"tps": 15.0})


@pytest.mark.parametrize(
    ("elapsed", "tps", "change"),
    [
        (0, 100, 25),
        (24.9, 100, 25),
        (25, 15, 45),
        (44.9, 15, 45),
        (45, 100, 85),
        (84, 100, 85),
        (85, 15, 105),
        (1e6, 15, None),
    ],
)
def test_a_window_opens_closes_and_comes_again(elapsed: float, tps: float, change: float | None) -> None:
    script = Script(tps=100, schedule=(SAG,))
    assert script_at(script, elapsed).tps == tps
    if change is not None:
        assert next_change(script, elapsed) == change


@given(st.floats(0, 1e5))
def test_the_next_change_lies_ahead_and_nothing_changes_before_it(elapsed: float) -> None:
    script = Script(tps=100, schedule=(SAG, Window(at=7, set_={"ttft": 3.0})))
    change = next_change(script, elapsed)
    assert change is not None
    assert change > elapsed
    assert script_at(script, elapsed) == script_at(script, elapsed + (change - elapsed) / 2)


def test_a_window_without_an_end_stays_open_and_later_windows_win() -> None:
    script = Script(schedule=(Window(at=1, set_={"tps": 5.0}), Window(at=2, for_=1, set_={"tps": 9.0})))
    assert [script_at(script, at).tps for at in (0, 1, 2, 3)] == [100, 5, 9, 5]
    assert next_change(script, 3) is None


def ended(timeline: Timeline) -> tuple[list[Step], Ending]:
    steps: list[Step] = []
    while True:
        try:
            steps.append(next(timeline))
        except StopIteration as stop:
            return steps, stop.value


def given_steps(texts: list[bytes]) -> Timeline:
    for at, text in enumerate(texts):
        yield float(at), text, 1
    return Ending.CLOSE


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=5), st.integers(1, 9), st.integers())
def test_tearing_keeps_every_byte_every_token_and_the_order(texts: list[bytes], pieces: int, seed: int) -> None:
    steps, ending = ended(split(given_steps(texts), pieces, 0.3, Random(seed)))
    assert b"".join(data for _, data, _ in steps) == b"".join(texts)
    assert sum(tokens for _, _, tokens in steps) == len(texts)
    assert [at for at, _, _ in steps] == sorted(at for at, _, _ in steps)
    assert all(data for _, data, _ in steps)
    assert ending is Ending.CLOSE


def test_tearing_makes_as_many_pieces_as_asked() -> None:
    script = Script(ttft=0, tps=1, output_tokens=1, faults=(Split(pieces=7),))
    assert len(planned(script)) == 7 * len(planned(replace(script, faults=())))


def test_holding_back_gives_one_write_at_the_end() -> None:
    assert ended(buffered(given_steps([b"a", b"b", b"c"]))) == ([(2.0, b"abc", 3)], Ending.CLOSE)


@given(st.sampled_from(["ascii", "wide"]), st.integers(0, 500), st.integers(0, 500), st.integers(1, 40))
def test_every_token_has_five_characters_and_text_does_not_depend_on_chunks(
    alphabet: str, start: int, first: int, count: int
) -> None:
    words = Words(alphabet, start)
    text = words.piece(first, count).decode()
    assert len(text) == 5 * count
    assert text == "".join(words.piece(first + at, 1).decode() for at in range(count))


def test_the_same_seed_gives_the_same_answer() -> None:
    script = Script(ttft=Ttft(0.1, sigma=0.5), jitter=0.5, seed=4)
    assert planned(script) == planned(script)
    assert due(script) != due(replace(script, seed=5))


def test_a_request_is_read_for_what_the_answer_needs() -> None:
    body: Json = {"model": "m", "messages": [{"role": "user", "content": "x" * 9}], "stream": 1, "max_tokens": None}
    chat = read_chat(body)
    assert (chat.stream, chat.prompt_tokens, chat.max_tokens, chat.include_usage) == (False, 3, None, False)
