"""The streaming phase of one attempt: scan each read, hold until the first token, then pass bytes on as they came."""

from collections.abc import Callable, Sequence

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError
from gateway.core.ports import Exchange, ReadEvent, Sink, StreamMeter
from gateway.core.reading import Reading
from gateway.dispatch.answers import Headers
from gateway.dispatch.deadlines import Deadlines, Pulse
from gateway.upstream.framers import Framing
from gateway.upstream.sse import Event

# What is held before the first token: more than any role chunk and preamble needs.
MAX_HELD = 1024 * 1024
# An event longer than this is no event.
MAX_EVENT = 32 * 1024 * 1024
# Sent where a provider ended well without it.
DONE = b"data: [DONE]\n\n"
_BLANK_LINE = b"\n\n"
_BOM = b"\xef\xbb\xbf"
# What a plain event has around its data: `data: ` and a blank line.
_AROUND_DATA = 8


class Relay:
    """One upstream stream on its way to one client.

    `run` raises AttemptError as long as nothing was committed; after that `error` holds what went wrong, and the
    caller of `run` tells the client in-band. `committed_at` is the moment of the read that bore the first token,
    `passing_s` the time from there until it was written to the client.
    """

    def __init__(
        self,
        exchange: Exchange,
        meter: StreamMeter,
        wire: tuple[Framing, ReadEvent],
        deadlines: Deadlines,
        pulse: Pulse,
    ) -> None:
        self._exchange = exchange
        self._meter = meter
        self._framer, self._read_event = wire
        self._deadlines = deadlines
        self._pulse = pulse
        self._held: list[bytes] = []
        self._held_bytes = 0
        # The pieces of an event that are passed on before its end is there.
        self._begun = False
        self._bears = False
        self._commits = False
        self._finish: str | None = None
        self._billed = 0
        self._terminal = b""
        self.committed_at: float | None = None
        self.passing_s = 0.0
        self.error: AttemptError | None = None

    async def run(
        self,
        sink: Sink,
        head: Callable[[], Headers],
        *,
        keep_usage: bool,
        footer: Callable[[], bytes],
    ) -> None:
        """Relays until the stream ends. `head` gives the response headers at the moment of the commit.

        `footer` gives what is written before the terminal marker of an answer that ended well.
        """
        ended = False
        while not (ended or self._terminal or self.error):
            try:
                if self._deadlines.overdue:  # the client was too slow, so the provider is not to blame
                    raise AttemptError("timeout_total", ours=True)
                got = await self._exchange.read(self._deadlines.until())
                if got is None:
                    await self._deadlines.passed(may_beat=not self._framer.inside_event)
                    continue
            except AttemptError as error:
                self._break(error)
                break
            data, at = got
            ended = not data
            out = self._sift(self._framer.feed(data) if data else self._rest(), at, keep_usage)
            if self.committed_at is None:
                await self._hold(out, at, sink, head)
            elif out:
                await self._write(sink, out)
        await self._conclude(sink, head, footer)

    # --- reading ---

    def _rest(self) -> list[Event]:
        """What the provider left open at the end, closed: nothing of ours must be read as a part of it."""
        events = self._framer.flush()
        for event in events:
            event.raw += _BLANK_LINE
        return events

    def _sift(self, events: Sequence[Event], at: float, keep_usage: bool) -> bytes:
        """Reads each event and returns the bytes to pass on."""
        if len(events) == 1:
            return self._judge(events[0], at, keep_usage)
        out: list[bytes] = []
        for event in events:
            out.append(self._judge(event, at, keep_usage))
            if self.error or self._terminal:
                break
        return b"".join(out)

    def _judge(self, event: Event, at: float, keep_usage: bool) -> bytes:
        """What of one event is passed on: all of it, or nothing. One that was begun is passed on to its end."""
        begun, self._begun = self._begun, event.partial
        if event.data is None:
            return self._judge_unread(event, at)
        if event.data == b"" and event.name is None:
            self._meter.comment()  # a sign of life, on which clients that expect JSON would crash
            return b""
        reading = self._read_event(event.name, event.data)
        raw = event.raw
        if reading.bad and self.committed_at is None and not self._bears:
            if event.unterminated:
                self._break(AttemptError("cut"))
            self._break(AttemptError("malformed", "sent a frame that cannot be decoded"))
        if reading.bad or len(raw) > len(event.data) + _AROUND_DATA:
            raw = _decodable(raw)
        self._meter.observe(reading, at)
        if reading.content or reading.reasoning or reading.tool:
            self._bears = True
            self._deadlines.token(at)
        if reading.error is not None:
            self._break(AttemptError(reading.error.code, wire=reading.error))
            return raw if begun else b""
        if reading.terminal:
            self._terminal = raw
            return b""
        self._finish = reading.finish or self._finish
        self._commits = self._commits or reading.unknown_delta
        if reading.usage is not None:
            self._billed = max(self._billed, reading.usage.output or 0)
        return b"" if reading.usage_only and not (keep_usage or begun) else raw

    def _judge_unread(self, event: Event, at: float) -> bytes:
        """Comments, blank lines, and events too long to be read."""
        for _ in range(event.comments):
            self._meter.comment()
        if event.partial or event.oversize:
            if event.oversize:
                self._meter.observe(Reading(bad=True), at)
            if self._framer.inside_event > MAX_EVENT:
                self._break(AttemptError("malformed", "sent an event without end"))
                return b""
            self._commits = self._commits or self._held_bytes + len(event.raw) > MAX_HELD // 2
            self._deadlines.token(at)
        elif self.committed_at is None and self._held_bytes > MAX_HELD // 4:
            return b""  # comments without end are not worth holding
        else:
            return _decodable(event.raw)
        return event.raw

    def _break(self, error: AttemptError) -> None:
        """The stream failed. Before the commit the attempt ends here, and the next deployment may answer."""
        if self.committed_at is None:
            raise error
        self.error = error

    # --- writing ---

    async def _hold(self, out: bytes, at: float, sink: Sink, head: Callable[[], Headers]) -> None:
        if out:
            self._held.append(out)
            self._held_bytes += len(out)
        if self._bears or self._commits:
            await self._commit(at, sink, head)
        elif self._held_bytes > MAX_HELD:
            raise AttemptError("malformed", "sent a megabyte without a token")

    async def _commit(self, at: float, sink: Sink, head: Callable[[], Headers]) -> None:
        self.committed_at = at
        headers = head()
        held = b"".join(self._held)
        if sink.started:
            # After a keep-alive a byte order mark would be read as a part of the first field's name.
            held = held.removeprefix(_BOM)
        else:
            await sink.start(200, headers)
        self._held.clear()
        if held:
            await self._write(sink, held)
        self.passing_s = monotonic() - at

    async def _write(self, sink: Sink, data: bytes) -> None:
        if sink.full:
            self._meter.waits(monotonic())
        blocked_s = await sink.write(data)
        now = monotonic()
        if blocked_s:
            self._meter.blocked(blocked_s)
            self._deadlines.took(now)
        self._pulse.put_off(now)

    async def _conclude(self, sink: Sink, head: Callable[[], Headers], footer: Callable[[], bytes]) -> None:
        """The stream is over: was that an answer?"""
        if self.error is not None:
            if self._begun:
                await self._write(sink, _BLANK_LINE)  # or the error would be read as a part of the half event
            return
        whole = self._finish is not None or bool(self._terminal)
        if self.committed_at is None:
            if self._finish is None and not self._billed:
                raise AttemptError("empty" if self._terminal else "cut")
            await self._commit(monotonic(), sink, head)
        if not whole:
            self.error = AttemptError("cut")
            return
        await self._write(sink, footer() + (self._terminal or DONE))


def _decodable(raw: bytes) -> bytes:
    """Bytes that are no UTF-8 are replaced: clients decode strictly and would crash on them."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw
