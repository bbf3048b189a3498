"""The meter of one attempt: moments, characters and gaps while the stream runs, a `Measurement` when it ends."""

from array import array
from dataclasses import replace

from gateway.core.reading import Reading, Usage
from gateway.core.record import Chars, Measurement, Speed, StreamEvents, Timing, Tokens
from gateway.core.types import Progress
from gateway.metering.quality import BLOCKED_SHARE, MIN_WINDOW_S, QUICK_GAP_S, Facts, Span
from gateway.metering.rates import judge_speed
from gateway.metering.served import DOWNGRADED, OTHER_MODEL
from gateway.metering.server_clock import compared, disagrees
from gateway.metering.tiers import downgraded
from gateway.metering.usage import counted, merged

# Gaps kept for the histogram, 4 bytes each. Of a longer stream the rest shows in max_gap and stalls only.
KEPT_GAPS = 4096
STALL_S = 1.0
CHARS_PER_TOKEN = 4.0


class Meter:
    """Implements `StreamMeter`. Moments are monotonic seconds; all events of one read must carry the same moment.

    `t0`: when the last byte of the attempt's request was written. `chars_per_token` and `prompt_estimate` stand in
    where the provider sends no usage. `asked_tier`: the speed tier the request asked the provider for. `tools`: it may
    answer with a call that comes whole after a silence. Feed it with `observe` for a stream, with `whole` for an answer
    in one body.
    """

    __slots__ = (
        "_answer_first",
        "_answer_first_chars",
        "_answer_largest",
        "_answer_last",
        "_answer_reads",
        "_asked_tier",
        "_bad",
        "_blocked_s",
        "_choices",
        "_clock",
        "_comments",
        "_content",
        "_corrupt",
        "_end",
        "_error",
        "_estimates",
        "_events",
        "_finish",
        "_first_chars",
        "_first_event",
        "_gaps",
        "_headers",
        "_id",
        "_id_changes",
        "_is_whole",
        "_largest",
        "_last",
        "_longest_gap_s",
        "_marks",
        "_model",
        "_pings",
        "_quick_gaps",
        "_read_answer",
        "_read_chars",
        "_reads",
        "_reasoning",
        "_silence_tells",
        "_spliced",
        "_stalls",
        "_started",
        "_summarised",
        "_t0",
        "_tier",
        "_tool",
        "_unbooked_s",
        "_usage",
        "_usage_at",
        "_waits_since",
        "_whole_tool",
        "_window_blocked_s",
        "first_token",
    )

    def __init__(
        self,
        t0: float,
        *,
        chars_per_token: float = CHARS_PER_TOKEN,
        prompt_estimate: int | None = None,
        marks: tuple[str, ...] = (),
        asked_tier: str | None = None,
        tools: bool = False,
    ) -> None:
        self._t0 = t0
        self._estimates = (chars_per_token, prompt_estimate)
        self._marks = marks
        self._asked_tier = asked_tier
        self._silence_tells = not tools
        self.first_token: float | None = None
        self._headers: float | None = None
        self._first_event: float | None = None
        self._end: float | None = None
        # The read that is going on: `_last` is its moment. It is booked when the next one begins.
        self._last = self._unbooked_s = 0.0
        self._read_chars = self._read_answer = 0
        self._reads = self._events = self._first_chars = self._largest = 0
        self._answer_first: float | None = None
        self._answer_last = 0.0
        self._answer_reads = self._answer_first_chars = self._answer_largest = 0
        self._content = self._reasoning = self._tool = 0
        self._gaps = array("f")
        self._quick_gaps = self._stalls = 0
        self._longest_gap_s = self._blocked_s = self._window_blocked_s = 0.0
        self._waits_since: float | None = None
        self._comments = self._pings = self._bad = 0
        self._id: str | None = None
        self._id_changes = 0
        self._started = self._spliced = False
        self._choices = 1
        self._corrupt = self._error = self._summarised = self._whole_tool = self._is_whole = False
        self._usage: Usage | None = None
        self._usage_at = 0
        self._finish: str | None = None
        self._model: str | None = None
        self._tier: str | None = None
        self._clock: dict[str, float] | None = None

    @property
    def terminated(self) -> bool:
        """A finish reason or the dialect's end marker was seen."""
        return self._finish is not None or self._end is not None

    def headers(self, at: float, sent: float | None = None) -> None:
        """The response head arrived; `sent` is when the last byte of the request really had left, known by now."""
        self._headers = at
        if sent is not None:
            self._t0 = sent

    def comment(self) -> None:
        """A comment or ping: no event, no token."""
        self._comments += 1

    def waits(self, at: float) -> None:
        """The client takes nothing at the moment; `blocked` follows, with how long it lasted."""
        self._waits_since = at

    def blocked(self, seconds: float) -> None:
        """We waited so long for the client to take what it had been sent."""
        self._waits_since = None
        self._blocked_s += seconds
        self._unbooked_s += seconds

    def observe(self, reading: Reading, at: float) -> None:
        """One event, in the order of the stream."""
        plain = reading.plain
        if not plain:
            if reading.ping:
                self._pings += 1
                return
            self._note(reading)
        if self._first_event is None:
            self._first_event = at
        answer = reading.content + reading.tool
        chars = answer + reading.reasoning
        if chars:
            if at != self._last or not self._events:
                self._next_read(at)
            self._events += 1
            self._read_chars += chars
            self._read_answer += answer
            self._content += reading.content
            if chars != reading.content:
                self._tool += reading.tool
                self._reasoning += reading.reasoning
            if reading.response_id != self._id:
                self._note_id(reading.response_id)
        if self._model is None:
            self._model = reading.model
        if reading.tier is not None:
            self._tier = reading.tier
        if not plain:
            self._note_end(reading, at)

    def _note(self, reading: Reading) -> None:
        """What is rare, and comes to bear before the event's tokens are counted."""
        self._choices = max(self._choices, reading.choices)
        self._error = self._error or reading.error is not None
        self._summarised = self._summarised or reading.summarised
        self._whole_tool = self._whole_tool or reading.tool_calls_whole > 0
        if reading.bad:
            self._bad += 1
            # Between the first token and the finish reason it most likely bore tokens.
            self._corrupt = self._corrupt or (self._events > 0 and self._finish is None)
        if reading.repeat and not (self._events or reading.content or reading.reasoning or reading.tool):
            # A whole message at the end is all there is when nothing was streamed before it.
            reading.content, reading.reasoning, reading.tool = reading.repeat, 0, 0
        if reading.serving_model is not None:
            self._model = reading.serving_model
            self._marks = (*(mark for mark in self._marks if mark != OTHER_MODEL), OTHER_MODEL)
        if reading.restart:
            self._note_start()

    def _note_id(self, response_id: str | None) -> None:
        """Of an event that bears tokens: a preamble or a usage chunk may have an id of its own."""
        if response_id is not None:
            self._id_changes += self._id is not None
            self._id = response_id

    def _note_start(self) -> None:
        """A second generation in one stream: what came of the first is not what the usage counts."""
        if self._started:
            self._spliced = True
            self.first_token = self._answer_first = None
            self._last = self._unbooked_s = self._answer_last = 0.0
            self._read_chars = self._read_answer = 0
            self._reads = self._events = self._first_chars = self._largest = 0
            self._answer_reads = self._answer_first_chars = self._answer_largest = 0
            self._content = self._reasoning = self._tool = 0
            self._usage = None
        self._started = True

    @property
    def _splice(self) -> bool:
        """Two answers in one stream. A vendor that gives every chunk an id of its own does not splice."""
        return self._spliced or 0 < 3 * self._id_changes <= self._events

    def _note_end(self, reading: Reading, at: float) -> None:
        """What comes at the end of a stream; running counts come with every event, the last one stays."""
        if reading.finish is not None:
            self._finish = reading.finish
        if reading.usage is not None:
            self._usage = reading.usage if self._usage is None else merged(self._usage, reading.usage)
            self._usage_at = self._events
        if reading.terminal and self._end is None:
            self._end = at
        if reading.server_clock is not None:
            self._clock = {**(self._clock or {}), **reading.server_clock}

    def whole(self, reading: Reading, at: float) -> None:
        """An answer that came in one body: counts, but nothing that time could be taken from."""
        self._is_whole = True
        self.observe(reading, at)

    def _next_read(self, at: float) -> None:
        """Books the read that ended and the gap to this one."""
        if not self._events:
            self.first_token = self._last = at
            self._unbooked_s = 0.0
            return
        self._book_read()
        gap = at - self._last
        if self._unbooked_s:
            self._window_blocked_s += self._unbooked_s
            gap = max(0.0, gap - self._unbooked_s)
            self._unbooked_s = 0.0
        self._last = at
        if gap < QUICK_GAP_S:
            self._quick_gaps += 1
        if gap > self._longest_gap_s:
            self._longest_gap_s = gap
        if gap >= STALL_S:
            self._stalls += 1
        if self._reads <= KEPT_GAPS:
            self._gaps.append(gap)

    def _book_read(self) -> None:
        """The characters of the read that ended, for the whole stream and for the answer alone."""
        chars, answer = self._read_chars, self._read_answer
        self._read_chars = self._read_answer = 0
        if not self._reads:
            self._first_chars = chars
        self._reads += 1
        if chars > self._largest:
            self._largest = chars
        if answer:
            if self._answer_first is None:
                self._answer_first = self._last
                self._answer_first_chars = answer
            self._answer_last = self._last
            self._answer_reads += 1
            if answer > self._answer_largest:
                self._answer_largest = answer

    def progress(self, now: float) -> Progress:
        """How far the stream is."""
        first = self.first_token
        if first is None:
            return Progress(now - self._t0, prompt_tokens=self._estimates[1])
        chars = self._content + self._reasoning + self._tool
        chars_per_token = self._estimates[0]
        if self._waits_since is not None:  # what comes while the client takes nothing is not looked at
            now = min(now, self._waits_since)
        # A call that is held back comes after a silence that says nothing.
        window_s = (now if self._silence_tells else self._last) - first
        blocked = self._window_blocked_s + self._unbooked_s > BLOCKED_SHARE * window_s
        after = chars - (self._first_chars if self._reads else self._read_chars)
        return Progress(
            elapsed_s=now - self._t0,
            first_token_s=first - self._t0,
            tokens=chars / chars_per_token,
            tps=after / chars_per_token / window_s if window_s > MIN_WINDOW_S and not blocked else None,
            resting=self._summarised or self._whole_tool or self._choices > 1 or self.terminated,
            prompt_tokens=self._estimates[1],
        )

    def finish(self, outcome: str, at: float) -> Measurement:
        """What was measured; `outcome` is `ok`, `error`, `truncated` or `cancelled`. Called at the end."""
        if self._read_chars:
            self._book_read()
        facts = self._facts("error" if self._error and outcome == "ok" else outcome)
        tokens = self._tokens(facts)
        speed, clock = self._speed(facts, tokens)
        return Measurement(
            timing=self._timing(at if self._end is None else self._end),
            tokens=tokens,
            chars=Chars(self._content, self._reasoning, self._tool),
            speed=speed,
            stream_events=StreamEvents(0 if self._is_whole else self._events, self._comments + self._pings, self._bad),
            gaps_s=tuple(self._gaps),
            finish_reason=self._finish,
            terminated=self.terminated,
            served_model=self._model,
            served_tier=self._tier,
            server_clock=clock,
            splice=self._splice,
        )

    def _facts(self, outcome: str) -> Facts:
        first = self._last if self.first_token is None else self.first_token
        answer_first = self._answer_last if self._answer_first is None else self._answer_first
        chars = self._content + self._reasoning + self._tool
        usage = self._final_usage()
        reasoning = usage.reasoning if usage else None
        output = usage.output if usage else None
        return Facts(
            outcome=outcome,
            all=Span(self._last - first, self._reads, chars, self._first_chars, self._largest),
            answer=Span(
                self._answer_last - answer_first,
                self._answer_reads,
                chars - self._reasoning,
                self._answer_first_chars,
                self._answer_largest,
            ),
            events=self._events,
            # A zero beside what was streamed is a counter that nobody filled in.
            output=None if not output and chars else output,
            reasoning=None if not reasoning and self._reasoning else reasoning,
            reasoning_chars=self._reasoning,
            summarised=self._summarised,
            whole_tool=self._whole_tool,
            corrupt=self._corrupt or self._splice,
            gaps=max(0, self._reads - 1),
            quick_gaps=self._quick_gaps,
            longest_gap_s=self._longest_gap_s,
            blocked_s=self._window_blocked_s,
            choices=self._choices,
            predicted=bool(usage and usage.predicted),
        )

    def _final_usage(self) -> Usage | None:
        """A running count that more tokens followed is not the final one (a stream cut in the middle)."""
        return self._usage if self._usage_at == self._events else None

    def _tokens(self, facts: Facts) -> Tokens:
        chars_per_token, prompt = self._estimates
        return counted(self._usage, (facts.output, facts.reasoning), facts.all.chars, chars_per_token, prompt)

    def _speed(self, facts: Facts, tokens: Tokens) -> tuple[Speed, dict[str, float] | None]:
        """The rates, and the provider's clock with our difference to it."""
        marks = ("cached", *self._marks) if tokens.cached else self._marks
        if downgraded(self._asked_tier, self._tier):
            marks = (*marks, DOWNGRADED)
        if self._is_whole:
            return Speed(quality=facts.outcome if facts.outcome != "ok" else None, marks=marks), self._clock
        estimated = facts.all.chars / self._estimates[0] if facts.output is None else None
        speed = judge_speed(facts, self._clock, estimated, marks)
        if self._clock is None:
            return speed, None
        clock = compared(self._clock, speed, facts.output, self._since(self.first_token))
        return (replace(speed, marks=(*marks, "clock")) if disagrees(clock) else speed), clock

    def _timing(self, end: float) -> Timing:
        streamed = not self._is_whole
        return Timing(
            headers_ms=self._since(self._headers),
            first_event_ms=self._since(self._first_event) if streamed else None,
            ttft_ms=self._since(self.first_token) if streamed else None,
            ttfa_ms=self._since(self._answer_first) if streamed else None,
            last_token_ms=self._since(self._last) if streamed and self._events else None,
            duration_ms=self._since(end),
            max_gap_ms=self._longest_gap_s * 1000 if self._reads > 1 else None,
            stalls=self._stalls,
            client_blocked_ms=self._blocked_s * 1000,
        )

    def _since(self, moment: float | None) -> float | None:
        return None if moment is None else (moment - self._t0) * 1000
