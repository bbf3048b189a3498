"""What one stream needs remembered: thinking inside the answer, reasoning that is repeated as it grows."""

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.reading import Reading
from gateway.core.types import Quirks
from gateway.providers.dialects import READERS


def chunk(**delta: object) -> bytes:
    return orjson.dumps({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def read(*payloads: bytes) -> list[Reading]:
    reader = READERS["openai"].reader(Quirks())
    return [reader(None, payload) for payload in payloads]


def totals(readings: list[Reading]) -> tuple[int, int]:
    return sum(reading.content for reading in readings), sum(reading.reasoning for reading in readings)


def cut(text: str, at: list[int]) -> list[str]:
    edges = [0, *sorted({place % (len(text) + 1) for place in at}), len(text)]
    return [text[start:end] for start, end in pairwise(edges) if start != end]


@given(
    st.text("ab<>/thinkTHINK é", max_size=30).filter(lambda text: "</think>" not in text + "</think"[:7]),
    st.text("ab<think>/ é", max_size=30),
    st.lists(st.integers(0, 100), max_size=12),
)
def test_thinking_inside_the_answer_is_reasoning_however_it_is_cut(thought: str, answer: str, at: list[int]) -> None:
    text = f"<think>{thought}</think>{answer}"
    first = text.index("</think>") + len("</think>")
    readings = read(*(chunk(content=piece) for piece in cut(text, at)))
    assert totals(readings) == (len(text) - first, first)


@given(st.text(min_size=1, max_size=40), st.lists(st.integers(0, 100), max_size=8))
def test_an_answer_that_does_not_think_aloud_is_all_answer(text: str, at: list[int]) -> None:
    if text.lstrip().startswith("<think>"[: len(text.lstrip())]) and text.strip():
        text = "." + text
    readings = read(*(chunk(content=piece) for piece in cut(text, at)))
    assert totals(readings) == (len(text), 0)


def test_blanks_before_the_tag_are_answer() -> None:
    assert totals(read(chunk(content="\n"), chunk(content="<think>"), chunk(content="x</think>y"))) == (2, 16)


@pytest.mark.parametrize("text", ["<div>", "<thinking>", " <t>", "<", "<<think>"])
def test_what_only_looks_like_the_tag_is_answer_in_the_end(text: str) -> None:
    assert totals(read(*(chunk(content=char) for char in text + "!"))) == (len(text) + 1, 0)


@pytest.mark.parametrize("pieces", [(" <", "000"), ("\n\n<t", "d>"), (" ", "<", "div>"), ("  <th", "at", "!")])
def test_blanks_in_the_piece_that_looks_like_the_tag_are_given_back_too(pieces: tuple[str, ...]) -> None:
    assert totals(read(*(chunk(content=piece) for piece in pieces))) == (len("".join(pieces)), 0)


def test_a_tag_in_mid_answer_is_text() -> None:
    assert totals(read(chunk(content="Use "), chunk(content="<think>"), chunk(content=" tags"))) == (16, 0)


def test_an_answer_begins_with_the_first_character_after_the_tag() -> None:
    readings = read(
        chunk(content="<think>Hm"), chunk(content="."), chunk(content="</think>\n\nBrest"), chunk(content=".")
    )
    assert [bool(reading.content) for reading in readings] == [False, False, True, True]


def test_a_stream_without_a_closing_tag_is_all_thinking() -> None:
    assert totals(read(chunk(content="<think>"), chunk(content="and so on"))) == (0, 16)


def detail(text: str, **more: object) -> bytes:
    return chunk(reasoning_details=[{"type": "reasoning.text", "text": text}], **more)


@given(st.lists(st.text("abc d", min_size=1, max_size=6), min_size=2, max_size=8))
def test_reasoning_that_is_repeated_as_it_grows_counts_once(pieces: list[str]) -> None:
    grown = ["".join(pieces[: end + 1]) for end in range(len(pieces))]
    readings = read(*(detail(text) for text in grown), chunk(content="Brest"))
    assert totals(readings) == (5, len("".join(pieces)))


@given(st.lists(st.text("abcdefgh", min_size=2, max_size=6), min_size=2, max_size=8))
def test_reasoning_in_pieces_counts_every_piece(pieces: list[str]) -> None:
    if pieces[1].startswith(pieces[0]):
        pieces[1] = "-" + pieces[1]
    readings = read(*(detail(text) for text in pieces), chunk(content="Brest"))
    assert totals(readings) == (5, len("".join(pieces)))


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_the_same_reasoning_under_two_names_counts_once(field: str) -> None:
    pieces = ["Compare", " the", " ports."]
    readings = read(*(detail(text, **{field: text}) for text in pieces))
    assert totals(readings) == (0, 18)
    grown = ["".join(pieces[: end + 1]) for end in range(3)]
    readings = read(*(detail(whole, **{field: text}) for whole, text in zip(grown, pieces, strict=True)))
    assert totals(readings) == (0, 18)


@pytest.mark.parametrize(
    ("text", "chars"),
    [
        ("<think>Hm.</think>Brest", (5, 18)),
        ("\n<think>Hm.</think>Brest", (6, 18)),
        ("<think>Hm.", (0, 10)),
        ("Use <think> tags", (16, 0)),
        ("Hm.</think>Brest", (16, 0)),
    ],
)
def test_thinking_inside_a_whole_answer_is_reasoning(text: str, chars: tuple[int, int]) -> None:
    body = orjson.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]})
    assert totals([READERS["openai"].read_body(body)]) == chars


def test_usage_errors_and_ends_are_read_in_every_state() -> None:
    ends = [
        orjson.dumps({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}),
        orjson.dumps({"error": {"message": "x", "code": 500}}),
        b"[DONE]",
        b"{broken",
    ]
    for before in ([], [chunk(content="<think>a")], [detail("a"), detail("ab")], [chunk(content="Hello")]):
        usage, error, done, bad = read(*before, *ends)[len(before) :]
        assert usage.usage is not None
        assert error.error is not None
        assert done.terminal
        assert bad.bad
