"""Server-sent events framed on bytes: LF, CRLF, CR, split anywhere, BOM, multi-line data, comments; bounded."""

import re
from dataclasses import dataclass

# A line end is CRLF, LF or CR; an event ends at two in a row. The first of them is matched from its last byte on. Where
# CR is the last byte there, it may be half of a CRLF: after an LF its other half is waited for, as a part of the event.
_EVENT_END = re.compile(rb"\n(?:\n|\r(?:\n|(?=[^\n])))|\r\r\n?")
_BOM = b"\xef\xbb\xbf"

# A tail longer than this is passed on before its event is complete (`partial`), so that nothing is held for long.
MAX_TAIL = 64 * 1024
# Up to this size the copy of a passed-on event is still read when it completes; a larger one is `oversize`.
MAX_PARSED = 1024 * 1024


@dataclass(slots=True)
class Event:
    """A piece of the stream. `raw` is relayed as it came; `data` is what a dialect reads.

    `data` None: only comments or blank lines. `partial`: a piece of an event that is not complete yet.
    `oversize`: the event is complete and was too long to be kept for reading. `unterminated`: the stream ended
    before its blank line.
    """

    raw: bytes
    name: bytes | None = None
    data: bytes | None = None
    comments: int = 0
    partial: bool = False
    oversize: bool = False
    unterminated: bool = False


class Framer:
    """Cuts a byte stream into events. Feed it reads as they come; `flush` at the end of the stream."""

    __slots__ = ("_copy", "_passed", "_skip_lf", "_tail")

    def __init__(self) -> None:
        self._tail = bytearray()
        # The part of the running event that was already passed on: its copy, and its length.
        self._copy = bytearray()
        self._passed = 0
        self._skip_lf = False

    @property
    def inside_event(self) -> int:
        """Bytes of the running event that were passed on already; 0 between events."""
        return self._passed

    def feed(self, data: bytes) -> list[Event]:
        """Events completed by `data`, in order. Their `raw` parts joined are all bytes fed, less the waiting tail."""
        # `find`, not `in`: for one byte in bytes that first tries, and fails, to read the byte as a number.
        if not (self._tail or self._passed or self._skip_lf) and data[-2:] == b"\n\n" and data.find(b"\r") < 0:
            if data[:6] == b"data: " and data.find(b"\n") == len(data) - 2:
                return [Event(data, None, data[6:-2])]
            return [_plain(part) for part in data[:-2].split(b"\n\n")]
        return self._feed_slowly(data)

    def flush(self) -> list[Event]:
        """What is left when the stream ended: an event without its closing blank line, or nothing."""
        if not self._tail and not self._passed:
            return []
        event = self._complete(bytes(self._tail))
        event.unterminated = True
        self._tail.clear()
        return [event]

    def _feed_slowly(self, data: bytes) -> list[Event]:
        prefix = b""
        if self._skip_lf and data:
            self._skip_lf = False
            if data[:1] == b"\n":  # the LF of a CRLF whose CR ended the last event
                prefix, data = b"\n", data[1:]
        # An event end may have begun in the last three bytes that were already there.
        search_from = max(0, len(self._tail) - 3)
        self._tail += data
        events = [Event(raw=prefix)] if prefix else []
        start = 0
        while match := _EVENT_END.search(self._tail, max(search_from, start)):
            events.append(self._complete(bytes(self._tail[start : match.end()])))
            start = match.end()
        if start:
            self._skip_lf = start == len(self._tail) and self._tail[-1:] == b"\r"
            del self._tail[:start]
        if len(self._tail) > MAX_TAIL:
            events.append(self._pass_tail_on())
        return events

    def _complete(self, raw: bytes) -> Event:
        if not self._passed:
            return _parse(raw, raw)
        total, whole = self._passed + len(raw), bytes(self._copy) + raw
        self._passed = 0
        self._copy = bytearray()
        return Event(raw=raw, oversize=True) if total > MAX_PARSED else _parse(raw, whole)

    def _pass_tail_on(self) -> Event:
        # The last three bytes stay: an event end may have begun in them.
        piece = bytes(self._tail[:-3])
        del self._tail[:-3]
        self._passed += len(piece)
        if self._passed <= MAX_PARSED:
            self._copy += piece
        return Event(raw=piece, partial=True)


def _plain(part: bytes) -> Event:
    """The common shape, one `data: …` line, without a search for lines."""
    if part[:6] == b"data: " and part.find(b"\n") < 0:
        return Event(part + b"\n\n", None, part[6:])
    raw = part + b"\n\n"
    return _parse(raw, raw)


def _parse(raw: bytes, whole: bytes) -> Event:
    """Fields of one event by the rules of the HTML standard (section 9.2); unknown fields are ignored."""
    name: bytes | None = None
    data: list[bytes] = []
    comments = 0
    for line in whole.removeprefix(_BOM).splitlines():
        field, colon, value = line.partition(b":")
        if colon and not field:
            comments += 1
            continue
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    if not data and (bare := whole.removeprefix(_BOM).strip())[:1] in (b"{", b"["):
        return Event(raw, name, bare)  # bare JSON without `data:`: how some providers dump an error
    return Event(raw, name, b"\n".join(data) if data else None, comments)
