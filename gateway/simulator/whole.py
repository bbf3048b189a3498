"""The timeline of an answer that is not streamed, with the faults that make sense there."""

import orjson

from gateway.core.types import Json
from gateway.simulator import faults
from gateway.simulator.answer import message, usage
from gateway.simulator.timeline import Ending, Job, Timeline, at_once
from gateway.simulator.wire import body_head, error_body, json_answer


def whole(job: Job) -> Timeline:
    """Nothing until the last token is made, then everything."""
    error = next((fault for fault in job.faults if isinstance(fault, faults.ErrorEvent)), None)
    if error is not None:
        body = error_body(500, error.message, code=error.code)
        return at_once(json_answer(500, body, job.keep_alive, job.script.headers), _end(job), job.ttft)
    return _told(job)


def _told(job: Job) -> Timeline:
    at = job.ttft + _writing_seconds(job)
    body = _body(job)
    head = body_head(200, "application/json", len(body), job.keep_alive, job.script.headers)
    tokens = job.answer.shown
    for fault in job.faults:
        match fault:
            case faults.Silence():
                yield at, head, 0
                return Ending.SILENT
            case faults.Reset():
                yield at, head if fault.after_tokens is None else head + body[: len(body) // 2], 0
                return Ending.RESET
            case faults.Cut():
                yield at, head + body[: len(body) // 2], 0
                return Ending.CLOSE
            case faults.Stall():
                yield at, head + body[: len(body) // 2], 0
                if fault.seconds is None:
                    return Ending.SILENT
                yield at + fault.seconds, body[len(body) // 2 :], tokens
                return _end(job)
    yield at, head + body, tokens
    return _end(job)


def _writing_seconds(job: Job) -> float:
    """From the first token to the last, hidden ones included."""
    answer, reasoning = job.answer, job.script.reasoning
    timed = answer.reasoning if reasoning is not None and reasoning.seconds is not None else 0
    fixed = reasoning.seconds if reasoning is not None and reasoning.seconds is not None else 0.0
    left = max(0, answer.output - timed - 1)
    slow = job.struck(faults.SlowAfter)
    before = left if slow is None else min(left, slow.after_tokens)
    seconds = fixed + (job.pace.gap(before) if before else 0.0)
    return seconds if slow is None else seconds + (left - before) / slow.tps


def _body(job: Job) -> bytes:
    empty = job.struck(faults.Empty)
    counts = usage(job.chat, job.script, job.answer)
    said = message(job.answer, f"call_{job.response_id}")
    reason: str | None = job.answer.finish_reason
    if empty is not None:
        counts = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        said = {"role": "assistant", "content": ""}
        reason = "stop" if empty.finish else None
    value: Json = {
        "id": job.response_id,
        "object": "chat.completion",
        "created": job.created,
        "model": job.chat.model,
        "service_tier": "default",
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": reason}],
    }
    if job.struck(faults.NoUsage) is None:
        value["usage"] = counts
    return _damaged(job, orjson.dumps(value))


def _damaged(job: Job, body: bytes) -> bytes:
    huge = job.struck(faults.HugeEvent)
    if huge is not None:
        body = body[:-1] + b',"padding":"' + b"x" * huge.size + b'"}'
    if job.struck(faults.InvalidUtf8) is not None:
        body = body[:-1] + b',"damage":"caf\xe9\xff"}'
    return body[: len(body) // 2] if job.struck(faults.Malformed) is not None else body


def _end(job: Job) -> Ending:
    return Ending.DONE if job.keep_alive else Ending.CLOSE
