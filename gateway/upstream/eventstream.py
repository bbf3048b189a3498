"""AWS binary event streams (application/vnd.amazon.eventstream) framed on bytes, both checksums checked; bounded.

A message: length, length of the headers and their checksum (12 bytes), typed headers, payload, checksum of it all.
Source: "Amazon Transcribe/S3 event stream encoding" in the AWS documentation, and botocore's reader.
"""

import struct
from zlib import crc32

from gateway.upstream.sse import Event

# As in AWS's own readers.
MAX_MESSAGE = 24 * 1024 * 1024
MAX_HEADERS = 128 * 1024

_PRELUDE = struct.Struct(">III")
_CRC = 4
# Bytes of a header's value by type; 6 (bytes) and 7 (text) say their length in two bytes of their own.
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class EventStreamFramer:
    """Cuts a byte stream into messages; each event's name is its event type.

    An exception's name is `exception:` and its type. After a wrong checksum no message can be found any more: one event
    named `corrupt:` tells of it, and what follows is dropped.
    """

    __slots__ = ("_broken", "_tail")

    def __init__(self) -> None:
        self._tail = bytearray()
        self._broken = False

    @property
    def inside_event(self) -> int:
        """Nothing of a message is passed on before its end."""
        return 0

    def feed(self, data: bytes) -> list[Event]:
        """Messages completed by `data`, in order."""
        if self._broken:
            return []
        self._tail += data
        events: list[Event] = []
        while len(self._tail) >= _PRELUDE.size:
            total, header_bytes, checksum = _PRELUDE.unpack_from(self._tail)
            sound = crc32(self._tail[: _PRELUDE.size - _CRC]) == checksum
            if not sound or not _possible(total, header_bytes):
                events.append(self._break())
            elif len(self._tail) < total:
                break
            else:
                message = bytes(self._tail[:total])
                del self._tail[:total]
                events.append(self._read(message, header_bytes))  # damage clears what follows
        return events

    def flush(self) -> list[Event]:
        """Half a message at the end of the stream, as it is: no dialect can read it."""
        half = bytes(self._tail)
        self._tail.clear()
        return [Event(half, None, half, unterminated=True)] if half else []

    def _read(self, message: bytes, header_bytes: int) -> Event:
        (checksum,) = struct.unpack_from(">I", message, len(message) - _CRC)
        if crc32(message[:-_CRC]) != checksum:
            return self._break()
        payload_at = _PRELUDE.size + header_bytes
        headers = _headers(message[_PRELUDE.size : payload_at])
        if headers is None:
            return self._break()
        return Event(message, _name(headers), message[payload_at:-_CRC])

    def _break(self) -> Event:
        self._broken = True
        self._tail.clear()
        return Event(b"", b"corrupt:", b"{}")


def _possible(total: int, header_bytes: int) -> bool:
    return header_bytes <= MAX_HEADERS and _PRELUDE.size + header_bytes + _CRC <= total <= MAX_MESSAGE


def _name(headers: dict[bytes, bytes]) -> bytes:
    kind = headers.get(b":message-type", b"event")
    if kind == b"exception":
        return b"exception:" + headers.get(b":exception-type", b"")
    if kind == b"error":
        return b"exception:" + headers.get(b":error-code", b"")
    return headers.get(b":event-type", b"")


def _headers(data: bytes) -> dict[bytes, bytes] | None:
    """Texts by name; values of other types are passed over. None where the lengths do not fit."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        if name_end >= len(data):
            return None
        kind, value_at = data[name_end], name_end + 1
        size = _SIZES.get(kind)
        if size is None:
            if kind not in (6, 7) or value_at + 2 > len(data):
                return None
            size = int.from_bytes(data[value_at : value_at + 2], "big")
            value_at += 2
        if value_at + size > len(data):
            return None
        if kind == 7:
            found[data[at + 1 : name_end]] = data[value_at : value_at + size]
        at = value_at + size
    return found
