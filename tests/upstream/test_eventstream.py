"""AWS event streams: messages cut from bytes, checksums checked, damage told once and bounded."""

import itertools
import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.eventstream import MAX_MESSAGE, EventStreamFramer
from gateway.upstream.sse import Event


def text_header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()


def message(payload: bytes = b"{}", event: str = "contentBlockDelta", *, headers: bytes | None = None) -> bytes:
    if headers is None:
        headers = text_header(":message-type", "event") + text_header(":event-type", event)
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    prelude += struct.pack(">I", crc32(prelude))
    body = prelude + headers + payload
    return body + struct.pack(">I", crc32(body))


def fed(*pieces: bytes) -> list[Event]:
    framer = EventStreamFramer()
    events = [event for piece in pieces for event in framer.feed(piece)]
    return [*events, *framer.flush()]


@given(st.lists(st.binary(max_size=60), max_size=6), st.lists(st.integers(0, 1000), max_size=8))
def test_messages_come_out_whole_however_they_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    data = b"".join(message(payload) for payload in payloads)
    edges = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    events = fed(*(data[start:end] for start, end in itertools.pairwise(edges)))
    assert [event.data for event in events] == payloads
    assert b"".join(event.raw for event in events) == data
    assert {event.name for event in events} <= {b"contentBlockDelta"}


@pytest.mark.parametrize("at", [0, 3, 5, 9, 14, 30, 70, -1])
def test_one_wrong_bit_is_told_and_nothing_after_it_is_believed(at: int) -> None:
    data = bytearray(message(b'{"delta":{"text":"Brest"}}'))
    data[at] ^= 1
    events = fed(message(), bytes(data), message(), message())
    assert [event.name for event in events] == [b"contentBlockDelta", b"corrupt:"]
    assert events[1].raw == b""


def test_half_a_message_at_the_end_is_told_as_it_is() -> None:
    whole, half = fed(message(), message()[:-3])
    assert whole.name == b"contentBlockDelta"
    assert (half.name, half.data, half.unterminated) == (None, message()[:-3], True)


@pytest.mark.parametrize(("total", "headers"), [(MAX_MESSAGE + 1, 0), (15, 0), (16, 1), (2**32 - 1, 2**31), (0, 0)])
def test_a_length_that_cannot_be_is_damage_and_is_not_waited_for(total: int, headers: int) -> None:
    prelude = struct.pack(">II", total, headers)
    (event,) = fed(prelude + struct.pack(">I", crc32(prelude)))
    assert event.name == b"corrupt:"


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        (text_header(":message-type", "exception") + text_header(":exception-type", "throttlingException"),
         b"exception:throttlingException"),
        (text_header(":message-type", "error") + text_header(":error-code", "Internal"), b"exception:Internal"),
        (text_header(":event-type", "metadata"), b"metadata"),
        (b"", b""),
        # Headers of every other type are passed over: true, byte, short, integer, long, bytes, timestamp, uuid.
        (b"\x01a\x00\x01b\x02x\x01c\x03xx\x01d\x04xxxx\x01e\x05xxxxxxxx\x01f\x06\x00\x02xx\x01g\x08xxxxxxxx"
         b"\x01h\x09xxxxxxxxxxxxxxxx" + text_header(":event-type", "metadata"), b"metadata"),
    ],
)  # fmt: skip
def test_a_message_is_named_by_its_headers(headers: bytes, name: bytes) -> None:
    (event,) = fed(message(headers=headers))
    assert event.name == name


@pytest.mark.parametrize(
    "headers", [b"\x05ab", b"\x01a\x07\x00\xff", b"\x01a\x63", b"\x01a\x09xx", b"\x01a", b"\x01a\x07\x00"]
)
def test_headers_whose_lengths_do_not_fit_are_damage(headers: bytes) -> None:
    (event,) = fed(message(headers=headers))
    assert event.name == b"corrupt:"


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_no_bytes_are_too_odd(pieces: list[bytes]) -> None:
    assert len(fed(*pieces)) <= 1 + len(b"".join(pieces)) // 16
