"""The timeline of a streamed answer, with every fault that can strike it."""

from collections.abc import Callable, Generator
from itertools import count

from gateway.core.types import Json
from gateway.simulator import faults
from gateway.simulator.answer import Segment, usage
from gateway.simulator.timeline import Ending, Job, Step, Timeline
from gateway.simulator.wire import stream_head

_ROLE = b'{"role":"assistant","content":"","refusal":null}'
_NO_TOKENS: Json = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}

# Part of a timeline: an ending where the stream ends in it, None where it goes on.
Part = Generator[Step, None, Ending | None]


def streamed(job: Job) -> Timeline:
    """From the head to `[DONE]`."""
    return _Telling(job).steps()


class _Telling:
    """Walks through one stream. `_at` is when the next thing is due, `_told` the tokens so far."""

    __slots__ = ("_at", "_frames", "_job", "_told")

    def __init__(self, job: Job) -> None:
        self._job = job
        self._frames = job.frames
        self._at = job.ttft * job.script.head_at
        self._told = 0

    def steps(self) -> Timeline:
        job = self._job
        yield self._at, stream_head(job.chunked, job.keep_alive, job.script.headers), 0
        for early in job.faults:
            if isinstance(early, faults.Silence):
                return Ending.SILENT
            if isinstance(early, faults.Reset) and early.after_tokens is None:
                return Ending.RESET
        yield self._at, self._frames.delta(_ROLE), 0
        empty = job.struck(faults.Empty)
        if empty is not None:
            return (yield from self._finish("stop" if empty.finish else None, _NO_TOKENS))
        ending = yield from self._wait()
        ending = ending or (yield from self._tell())
        return ending or (yield from self._finish(job.answer.finish_reason, usage(job.chat, job.script, job.answer)))

    def _wait(self) -> Part:
        """Until the first token: comments where the script wants them, the time of hidden thought."""
        job = self._job
        first = job.ttft + self._hidden_seconds()
        comments = job.struck(faults.Comments)
        if comments is not None:
            line = self._frames.raw(b": %b\n\n" % comments.text.encode())
            start = self._at
            for number in count():
                at = start + number * max(comments.every, 0.001)
                if at >= first and not comments.for_ever:
                    break
                yield at, line, 0
        self._at = first
        return None

    def _hidden_seconds(self) -> float:
        hidden, reasoning = self._job.answer.hidden, self._job.script.reasoning
        if not hidden or reasoning is None:
            return 0.0
        return self._job.pace.gap(hidden) if reasoning.seconds is None else reasoning.seconds

    def _tell(self) -> Part:
        """All tokens, chunk by chunk, and the faults at their places between them."""
        waiting = sorted(
            (place, order) for order, fault in enumerate(self._job.faults) if (place := _place(fault)) is not None
        )
        for segment in self._job.answer.segments:
            first = 0
            while first < segment.tokens:
                while waiting and waiting[0][0] <= self._told:
                    ending = yield from self._strike(self._job.faults[waiting.pop(0)[1]])
                    if ending is not None:
                        return ending
                until = min(segment.tokens, first + waiting[0][0] - self._told) if waiting else segment.tokens
                yield from self._run(segment, first, until)
                first = until
        for _, order in waiting:
            ending = yield from self._strike(self._job.faults[order])
            if ending is not None:
                return ending
        return None

    def _run(self, segment: Segment, first: int, until: int) -> Generator[Step, None, None]:
        """Tokens `first` to `until` of a segment: the hot loop."""
        make, gap = self._frames.maker(segment), self._gap(segment)
        per_chunk = self._job.script.tokens_per_chunk
        while first < until:
            taken = min(per_chunk, until - first)
            if self._told:
                self._at += gap(taken)
            yield self._at, make(first, taken), taken
            first += taken
            self._told += taken

    def _gap(self, segment: Segment) -> Callable[[int], float]:
        reasoning = self._job.script.reasoning
        if segment.kind != "reasoning" or reasoning is None or reasoning.seconds is None:
            return self._job.pace.gap
        each = reasoning.seconds / segment.tokens
        return lambda tokens: tokens * each

    def _strike(self, fault: faults.Fault) -> Part:
        frames = self._frames
        match fault:
            case faults.Cut():
                if fault.terminated:
                    yield self._at, frames.end(), 0
                return Ending.CLOSE
            case faults.Reset():
                return Ending.RESET
            case faults.Stall():
                if fault.seconds is None:
                    return Ending.SILENT
                self._at += fault.seconds
            case faults.SlowAfter():
                self._job.pace.override_tps = fault.tps
            case faults.Malformed():
                yield self._at, frames.broken(), 0
            case faults.InvalidUtf8():
                yield self._at, frames.delta(b'{"content":"caf\xe9\xff"}'), 0
            case faults.HugeEvent():
                yield self._at, frames.padded(fault.size), 0
            case faults.ErrorEvent():
                error = {"message": fault.message, "type": fault.type, "param": None, "code": fault.code}
                done = frames.done() if isinstance(fault, faults.ErrorThenDone) else b""
                yield self._at, frames.error(error) + done + frames.end(), 0
                return Ending.DONE if done else Ending.CLOSE
        return None

    def _finish(self, reason: str | None, counts: Json) -> Timeline:
        """Finish chunk, usage where it is wanted, end marker, end of the body."""
        job, frames = self._job, self._frames
        parts = [frames.delta(b"{}", reason)] if reason else []
        asked = job.chat.include_usage or job.struck(faults.UsageAlways) is not None
        if asked and job.struck(faults.NoUsage) is None:
            parts.append(frames.usage(counts))
        if job.struck(faults.NoDone) is None:
            parts.append(frames.done())
        yield self._at, b"".join([*parts, frames.end()]), 0
        return Ending.DONE if job.keep_alive else Ending.CLOSE


def _place(fault: faults.Fault) -> int | None:
    """The token after which the fault strikes; None where it has no such place."""
    return fault.after_tokens if isinstance(fault, faults.Midway | faults.Reset) else None
