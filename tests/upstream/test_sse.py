"""SSE framing: every line end, split anywhere, bounded memory, nothing lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.sse import MAX_PARSED, MAX_TAIL, Event, Framer


def frame(*reads: bytes) -> list[Event]:
    framer = Framer()
    events = [event for read in reads for event in framer.feed(read)]
    return events + framer.flush()


def readings(events: list[Event]) -> list[tuple[bytes | None, bytes]]:
    return [(event.name, event.data) for event in events if event.data is not None]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [(None, b"a"), (None, b"b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [(None, b"a"), (None, b"b")]),
        (b"data: a\r\rdata: b\r\r", [(None, b"a"), (None, b"b")]),
        (b"data: a\r\n\ndata: b\n\r\n", [(None, b"a"), (None, b"b")]),
        (b"data:a\n\n", [(None, b"a")]),
        (b"data:  a\n\n", [(None, b" a")]),
        (b"data: a\ndata: b\n\n", [(None, b"a\nb")]),
        (b"data: a\r\ndata\r\ndata: b\r\n\r\n", [(None, b"a\n\nb")]),
        (b"event: error\ndata: a\n\n", [(b"error", b"a")]),
        (b"id: 1\nretry: 5\nfoo: x\ndata: a\n\n", [(None, b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(None, b"a")]),
        (b": hello\n\n:\n\ndata: a\n\n", [(None, b"a")]),
        (b"\n\n\ndata: a\n\n\n\n", [(None, b"a")]),
        (b"data\n\n", [(None, b"")]),
        (b"data: a\n\ndata: tail", [(None, b"a"), (None, b"tail")]),
        (b"data: a\n\ndata: tail\n", [(None, b"a"), (None, b"tail")]),
        (b'{"error": {\n"code": 1}}\n', [(None, b'{"error": {\n"code": 1}}')]),
    ],
)
def test_a_stream_reads_the_same_whole_and_byte_by_byte(stream: bytes, expected: object) -> None:
    assert readings(frame(stream)) == expected
    assert readings(frame(*(stream[i : i + 1] for i in range(len(stream))))) == expected


def test_comments_are_counted_and_bear_no_data() -> None:
    events = frame(b": one\n: two\n\ndata: a\n: three\n\n")
    assert [(event.comments, event.data) for event in events] == [(2, None), (1, b"a")]


def test_an_unterminated_tail_says_so() -> None:
    events = frame(b"data: a\n\ndata: b")
    assert [event.unterminated for event in events] == [False, True]


LINE = st.sampled_from([b"data: x", b"data:y", b": c", b"event: e", b"", b"id: 1", b"data: \xc3\xa9\xff", b"junk"])
END = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINE, END), max_size=30), st.lists(st.integers(1, 9), max_size=60))
def test_raw_bytes_are_never_lost_and_splits_never_matter(lines: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    stream = b"".join(line + end for line, end in lines)
    reads, at = [], 0
    for cut in cuts:
        reads.append(stream[at : at + cut])
        at += cut
    reads.append(stream[at:])
    events = frame(*reads)
    assert b"".join(event.raw for event in events) == stream
    assert readings(events) == readings(frame(stream))


def test_a_long_event_is_passed_on_in_pieces_and_still_read() -> None:
    payload = b"x" * (3 * MAX_TAIL)
    stream = b"data: " + payload + b"\n\n"
    framer = Framer()
    events = [event for i in range(0, len(stream), 7000) for event in framer.feed(stream[i : i + 7000])]
    assert b"".join(event.raw for event in events) == stream
    assert [event.partial for event in events] == [True] * (len(events) - 1) + [False]
    assert events[-1].data == payload
    assert framer.inside_event == 0


def test_an_event_over_the_limit_is_passed_on_unread_in_bounded_memory() -> None:
    framer = Framer()
    passed = 0
    for _ in range(200):
        for event in framer.feed(b"y" * 64_000):
            assert event.partial
            passed += len(event.raw)
        held = len(framer._tail) + len(framer._copy)
        assert held <= MAX_PARSED + 4 * MAX_TAIL
    (last,) = framer.feed(b"\n\n")
    assert last.oversize
    assert last.data is None
    assert passed + len(last.raw) == 200 * 64_000 + 2
    assert readings(framer.feed(b"data: next\n\n")) == [(None, b"next")]
