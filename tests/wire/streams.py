"""The recorded streams: their pieces in time, what of each may reach a client, and what is to be read from it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent / "fixtures" / "wire"
# Streams of dialects that no surface speaks yet; tests/metering/test_wire.py reads them.
_OTHER_DIALECTS = ("anthropic-", "gemini-native-", "openai-responses-", "bedrock-", "cohere-v2-", "ollama-native")
EXPECT: dict[str, Any] = {
    name: entry
    for name, entry in json.loads((FIXTURES / "EXPECT.json").read_text("utf-8")).items()
    if not name.startswith(_OTHER_DIALECTS)
}

# Longer waits teach nothing and are cut to this; still above the pause (250 ms) that the quality rules look for.
LONGEST_WAIT_MS = 400.0

# The outcome and error code of a record, where it is not a good answer.
FAILURES = {
    "openai-chat-error-midstream.sse": ("error", "server_error"),
    "vllm-error-then-done.sse": ("error", "server_error"),
    "deepseek-insufficient-resource.sse": ("error", "overloaded"),
    "generic-eof-no-done.sse": ("truncated", "cut"),
    "minimax-base-resp-error.sse": ("error", "rate_limited"),
    "lmstudio-error-event.sse": ("error", "context_length"),
}
# No token comes before their error: nothing of them reaches a client, and the next deployment is asked.
REFUSALS = {"minimax-base-resp-error.sse": 429, "lmstudio-error-event.sse": 400}
ANSWERS = sorted(set(EXPECT) - set(REFUSALS))


def data_of(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


@dataclass(frozen=True, slots=True)
class Piece:
    """What arrived at one moment: its first line, the wait before it, its bytes."""

    line: int
    wait_s: float
    data: bytes


def pieces_of(name: str) -> list[Piece]:
    lines = data_of(name).splitlines(keepends=True)
    arrivals = EXPECT[name]["arrivals"]
    pieces, before_ms = [], 0.0
    for (line, ms), (next_line, _) in zip(arrivals, [*arrivals[1:], (len(lines) + 1, 0)], strict=True):
        wait_ms = min(ms - before_ms, LONGEST_WAIT_MS)
        pieces.append(Piece(line, wait_ms / 1000, b"".join(lines[line - 1 : next_line - 1])))
        before_ms = ms
    return pieces


def piece_of_line(name: str, line: int) -> int:
    """The number of the piece a line came in."""
    return max(index for index, (first, _) in enumerate(EXPECT[name]["arrivals"]) if first <= line)


def nominal_s(name: str, first_line: int, last_line: int) -> float:
    """The time between two lines, in the recording."""
    arrivals = EXPECT[name]["arrivals"]
    ms = [arrivals[piece_of_line(name, line)][1] for line in (first_line, last_line)]
    return float(ms[1] - ms[0]) / 1000


def passing(name: str, usage_asked: bool) -> tuple[bytes, bool]:
    """The bytes of a stream a client gets, and whether an error event of the gateway's own follows them.

    Written from docs/decisions/0004 alone, with no code of the gateway: blocks of lines up to a blank one.
    """
    out, finished, ended = passing_of(data_of(name), usage_asked)
    if ended is not None:
        return out, ended == "error"
    return (out + b"data: [DONE]\n\n", False) if finished else (out, True)


def passing_of(data: bytes, usage_asked: bool) -> tuple[bytes, bool, str | None]:
    """The same of a part of a stream: the bytes, whether it has finished, and which end it has come to if any."""
    out, finished = b"", False
    for block in _blocks(data):
        payload = _payload(block)
        if payload == "[DONE]":
            return out + block, finished, "done"
        event = _json_or_none(payload)
        if _is_error(block, event):
            return out, finished, "error"
        finished = finished or any(choice.get("finish_reason") for choice in event.get("choices") or ())
        if event.get("choices") == [] and event.get("usage") and not usage_asked:
            continue
        out += block if block.endswith((b"\n\n", b"\r\n\r\n")) else block + b"\n\n"
    return out, finished, None


def _blocks(data: bytes) -> list[bytes]:
    blocks = [b""]
    for line in data.splitlines(keepends=True):
        blocks[-1] += line
        if not line.strip():
            blocks.append(b"")
    return [block for block in blocks if block]


def _payload(block: bytes) -> str:
    lines = block.decode("utf-8-sig").splitlines()
    return "\n".join(line.removeprefix("data:").strip() for line in lines if line.startswith("data:"))


def _json_or_none(payload: str) -> dict[str, Any]:
    """Nothing for comments, and for the frame that a splice left undecodable."""
    try:
        return dict(json.loads(payload))
    except ValueError:
        return {}


def _is_error(block: bytes, event: dict[str, Any]) -> bool:
    choices = event.get("choices") or ()
    return (
        block.startswith(b"event: error")
        or bool(event.get("error"))
        or bool((event.get("base_resp") or {}).get("status_code"))
        or any(choice.get("finish_reason") == "insufficient_system_resource" for choice in choices)
    )
