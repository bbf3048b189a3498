"""JSON lines framed on bytes: one object a line, split anywhere; bounded."""

from gateway.upstream.sse import MAX_PARSED, MAX_TAIL, Event


class LineFramer:
    """Cuts a byte stream into lines. Feed it reads as they come; `flush` at the end of the stream."""

    __slots__ = ("_copy", "_passed", "_tail")

    def __init__(self) -> None:
        self._tail = bytearray()
        self._copy = bytearray()
        self._passed = 0

    @property
    def inside_event(self) -> int:
        """Bytes of the running line that were passed on already; 0 between lines."""
        return self._passed

    def feed(self, data: bytes) -> list[Event]:
        """Lines completed by `data`, in order."""
        searched = len(self._tail)
        self._tail += data
        events: list[Event] = []
        start = 0
        while (end := self._tail.find(b"\n", max(start, searched))) >= 0:
            events.append(self._complete(bytes(self._tail[start : end + 1])))
            start = end + 1
        del self._tail[:start]
        if len(self._tail) > MAX_TAIL:
            events.append(self._pass_tail_on())
        return events

    def flush(self) -> list[Event]:
        """What is left when the stream ended: a line without its end, or nothing."""
        if not self._tail and not self._passed:
            return []
        event = self._complete(bytes(self._tail))
        event.unterminated = True
        self._tail.clear()
        return [event]

    def _complete(self, raw: bytes) -> Event:
        total, whole = self._passed + len(raw), bytes(self._copy) + raw
        self._passed = 0
        self._copy = bytearray()
        if total > MAX_PARSED:
            return Event(raw=raw, oversize=True)
        return Event(raw, None, whole.strip() or None)

    def _pass_tail_on(self) -> Event:
        piece = bytes(self._tail)
        self._tail.clear()
        self._passed += len(piece)
        if self._passed <= MAX_PARSED:
            self._copy += piece
        return Event(raw=piece, partial=True)
