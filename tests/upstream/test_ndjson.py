"""JSON lines: cut from bytes anywhere, bounded."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.ndjson import LineFramer
from gateway.upstream.sse import MAX_PARSED, MAX_TAIL, Event


def fed(*pieces: bytes) -> list[Event]:
    framer = LineFramer()
    events = [event for piece in pieces for event in framer.feed(piece)]
    return [*events, *framer.flush()]


@given(
    st.lists(st.sampled_from([b'{"a":1}\n', b'{"b":2}\r\n', b"\n", b" \n"]), max_size=8), st.lists(st.integers(0, 99))
)
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    data = b"".join(lines)
    edges = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    events = fed(*(data[start:end] for start, end in itertools.pairwise(edges)))
    assert [event.data for event in events] == [line.strip() or None for line in lines]
    assert b"".join(event.raw for event in events) == data


def test_a_last_line_without_its_end_is_read() -> None:
    (first, last) = fed(b'{"a":1}\n{"done":true}')
    assert (first.unterminated, last.unterminated, last.data) == (False, True, b'{"done":true}')


def test_a_long_line_is_passed_on_in_pieces_and_read_at_its_end() -> None:
    line = b'{"a":"' + b"x" * (2 * MAX_TAIL) + b'"}\n'
    pieces = [line[at : at + 50_000] for at in range(0, len(line), 50_000)]
    events = fed(*pieces)
    assert b"".join(event.raw for event in events) == line
    assert [event.partial for event in events[:-1]] == [True] * (len(events) - 1)
    assert events[-1].data == line.strip()


def test_a_line_that_is_too_long_is_not_read() -> None:
    framer = LineFramer()
    for _ in range(MAX_PARSED // 50_000 + 2):
        framer.feed(b"x" * 50_000)
    assert framer.inside_event > MAX_PARSED
    (event,) = framer.feed(b"\n")
    assert event.oversize
    assert framer.inside_event == 0
