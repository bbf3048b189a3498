"""Answers whose truth is known, streamed in every dialect and cut anywhere: all dialects tell the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metering.rendering import RENDERERS, Truth
from tests.metering.replaying import Replay

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
PIECES = st.lists(st.tuples(st.sampled_from(("text", "text", "thought", "call")), TEXT), min_size=1, max_size=12)


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    # An answer that begins with a tag is thinking to the openai dialect, and tested there.
    pieces = tuple((kind, text if text.lstrip()[:1] != "<" else "." + text) for kind, text in draw(PIECES))
    prompt = draw(st.integers(1, 100_000))
    reasoning = draw(st.integers(1, 500)) if any(kind == "thought" for kind, _ in pieces) else 0
    return Truth(
        pieces,
        prompt=prompt,
        cached=draw(st.integers(0, prompt)),
        output=reasoning + draw(st.integers(1, 500)),
        reasoning=reasoning,
    )


def replayed(dialect: str, truth: Truth, cuts: list[int]) -> Replay:
    data = b"".join(RENDERERS[dialect](truth))
    replay, start = Replay(dialect), 0
    for cut in [*sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]:
        replay.feed(data[start:cut], start / 1000)
        start = cut
    replay.flush(len(data) / 1000)
    return replay


@pytest.mark.parametrize("dialect", sorted(RENDERERS))
@given(truth=truths(), cuts=st.lists(st.integers(0, 100_000), max_size=6))
@settings(deadline=None, max_examples=60)
def test_counts_are_the_truth_in_every_dialect(dialect: str, truth: Truth, cuts: list[int]) -> None:
    replay = replayed(dialect, truth, cuts)
    measured = replay.result(1.0)
    chars = {"text": measured.chars.content, "thought": measured.chars.reasoning, "call": measured.chars.tool}
    expected = {kind: truth.chars(kind) for kind in chars}
    if dialect == "ollama":  # it has no pieces of calls
        expected = {"text": expected["text"] + expected["call"], "thought": expected["thought"], "call": 0}
    assert chars == expected
    assert measured.stream_events.tokens == len(truth.pieces)
    assert (measured.tokens.input, measured.tokens.output, measured.tokens.source) == (
        truth.prompt, truth.output, "usage",
    )  # fmt: skip
    if dialect != "ollama":
        assert measured.tokens.cached == truth.cached
    if dialect not in ("ollama", "bedrock", "cohere"):
        assert measured.tokens.reasoning == (truth.reasoning or (None if dialect == "anthropic" else 0))
    assert measured.terminated
    assert not measured.splice
    assert replay.error is None
    assert measured.stream_events.bad == 0


@pytest.mark.parametrize("dialect", sorted(RENDERERS))
def test_rates_are_the_truth_in_every_dialect(dialect: str) -> None:
    """A hundred tokens a second, a token of four characters in each event."""
    truth = Truth(tuple([("text", "abcd")] * 101), prompt=50, cached=0, output=101, reasoning=0)
    pieces = RENDERERS[dialect](truth)
    lead = len(pieces) - len(truth.pieces) - 1
    replay, at = Replay(dialect), 0.0
    for index, piece in enumerate(pieces):
        at = 0.3 + 0.01 * max(0, min(index - lead, len(truth.pieces) - 1))
        replay.feed(piece, at)
    replay.flush(at)
    measured = replay.result(at)
    assert measured.speed.quality == "ok"
    assert measured.speed.output_tps == pytest.approx(100, rel=1e-6)
    assert measured.speed.answer_tps == pytest.approx(100, rel=1e-6)
    assert measured.timing.ttft_ms == pytest.approx(300)
