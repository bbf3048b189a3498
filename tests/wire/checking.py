"""What is wrong with one replayed stream, as a list of sentences, so that one run tells of every stream."""

import json

from gateway.core.record import GenerationRecord, as_json
from tests.wire.playing import Seen
from tests.wire.streams import EXPECT, FAILURES, nominal_s, passing, piece_of_line

# The kernel may hand bytes over a little after they were written.
SLACK_MS = 30.0
# Below it no rate is stated.
SHORTEST_WINDOW_S = 0.020
MARGIN_S = 0.005
# Stands in everything a first choice sends that must not be seen again.
TELLTALE = "telltale"


def wrong_bytes(name: str, seen: Seen, usage_asked: bool) -> list[str]:
    expected, fails = passing(name, usage_asked)
    if seen.status != 200:
        return [f"status {seen.status}"]
    if not fails:
        return [] if seen.body == expected else [f"bytes {seen.body!r} for {expected!r}"]
    if not seen.body.startswith(expected):
        return [f"bytes {seen.body!r} do not begin with {expected!r}"]
    return wrong_error_event(name, seen.body[len(expected) :])


def wrong_error_event(name: str, rest: bytes) -> list[str]:
    """One event, ours, with nothing of the upstream's words, and no end marker after it."""
    if not (rest.startswith(b'data: {"error":') and rest.endswith(b"}\n\n") and rest.count(b"\n") == 2):
        return [f"ends with {rest!r}"]
    code = json.loads(rest[6:])["error"]["code"]
    problems = [] if code == FAILURES[name][1] else [f"error code {code}"]
    if b"Internal server error" in rest or b"had an error" in rest:
        problems.append("the upstream's words are passed on")
    return problems


def wrong_counts(name: str, record: GenerationRecord) -> list[str]:
    expect, tokens, chars, events = EXPECT[name]["expect"], record.tokens, record.chars, record.stream_events
    counted = tokens.source == "usage"
    got = {
        "content_chars": chars.content,
        "reasoning_chars": chars.reasoning,
        "tool_chars": chars.tool,
        "token_events": events.tokens,
        "comments": events.comments,
        "bad_frames": events.bad,
        "prompt_tokens": tokens.input if counted else None,
        "cached_tokens": tokens.cached,
        "output_tokens": tokens.output if counted else None,
        "reasoning_tokens": tokens.reasoning,
        "finish": record.finish_reason,
    }
    problems = [f"{key} {value} for {expect[key]}" for key, value in got.items() if value != expect[key]]
    ended = (record.outcome, record.error)
    if ended != FAILURES.get(name, ("ok", None)):
        problems.append(f"ended {ended}")
    if record.terminated != (expect["finish"] is not None):
        problems.append(f"terminated {record.terminated}")
    return problems


def wrong_moments(name: str, seen: Seen, opened: float) -> list[str]:
    """No moment can lie before its bytes were written, nor after the gateway was given the time to read them.

    Whatever delays the machine causes move both bounds. `opened` lies before the request of the attempt was sent.
    """
    expect, timing, played = EXPECT[name]["expect"], seen.record.timing, seen.played[-1]
    problems = []
    for field, line in (
        ("first_event_ms", expect["first_event_line"]),
        ("ttft_ms", expect["first_token_line"]),
        ("ttfa_ms", expect["first_answer_line"]),
        ("last_token_ms", expect["last_token_line"]),
    ):
        before, after = played.written[piece_of_line(name, line)]
        low, high = (before - played.asked) * 1000, (after - opened) * 1000 + SLACK_MS
        if not low <= getattr(timing, field) <= high:
            problems.append(f"{field} {getattr(timing, field)} not in {low:.1f} to {high:.1f}")
    committed = played.written[piece_of_line(name, expect["first_token_line"])][1]
    waited = seen.record.client.ttft_ms
    if waited is None or not (timing.ttft_ms or 0) <= waited <= (committed - seen.posted) * 1000 + SLACK_MS:
        problems.append(f"the client waited {waited} for a first token at {timing.ttft_ms}")
    if timing.duration_ms is None or timing.duration_ms < (played.written[-2][0] - played.asked) * 1000:
        problems.append(f"duration_ms {timing.duration_ms}")
    return problems


def wrong_speed(name: str, seen: Seen) -> list[str]:
    expect, speed = EXPECT[name]["expect"], seen.record.speed
    problems = []
    if not undecided(name, seen, "first_token_line"):
        # A process that was not run for a while in the middle of a write cannot tell that from a slow client.
        allowed = expect["quality"] + (["client_blocked"] if seen.record.timing.client_blocked_ms else [])
        if speed.quality not in allowed:
            problems.append(f"quality {speed.quality} not in {expect['quality']}")
        problems += wrong_rate(name, seen, "output_tps", "first_token_line")
    if not undecided(name, seen, "first_answer_line"):
        problems += wrong_rate(name, seen, "answer_tps", "first_answer_line")
    return problems


def window(name: str, seen: Seen, first_line: str) -> tuple[float, float]:
    """The shortest and the longest it can have been, from the first token or answer to the last token, in seconds."""
    expect, written = EXPECT[name]["expect"], seen.played[-1].written
    first = written[piece_of_line(name, expect[first_line])]
    last = written[piece_of_line(name, expect["last_token_line"])]
    return max(0.0, last[0] - first[1]), last[1] - first[0]


def undecided(name: str, seen: Seen, first_line: str) -> bool:
    """The window was about as long as one must be to have a rate, or the machine was so slow that it became so long."""
    shortest, longest = window(name, seen, first_line)
    nominal = nominal_s(name, EXPECT[name]["expect"][first_line], EXPECT[name]["expect"]["last_token_line"])
    return min(nominal, shortest - MARGIN_S) < SHORTEST_WINDOW_S <= max(nominal, longest + MARGIN_S)


def wrong_rate(name: str, seen: Seen, field: str, first_line: str) -> list[str]:
    """The rate by what was recorded, over the time it took here."""
    expect, rate = EXPECT[name]["expect"], getattr(seen.record.speed, field)
    if seen.record.speed.quality == "client_blocked":
        return []
    if expect[field] is None or rate is None:
        return [] if rate is None and (expect[field] is None) else [f"{field} {rate} for {expect[field]}"]
    tokens = expect[field] * nominal_s(name, expect[first_line], expect["last_token_line"])
    rounding = 1 + 0.06 / expect[field]
    shortest, longest = window(name, seen, first_line)
    low, high = (
        tokens / (longest + SLACK_MS / 1000) / rounding,
        tokens / shortest * rounding if shortest else float("inf"),
    )
    return [] if low <= rate <= high else [f"{field} {rate} not in {low:.1f} to {high:.1f}"]


def of_all(problems: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in problems.items() if found}


def wrong_attempts(seen: Seen, code: str) -> list[str]:
    record = seen.record
    first, second = record.attempts
    problems = []
    if (first.outcome, first.error, first.ttft_ms) != ("failed", code, None):
        problems.append(f"first attempt {first}, not {code}")
    if (second.outcome, second.kind) != (record.outcome, "fallback"):
        problems.append(f"second attempt {second}")
    if seen.headers["x-gateway-attempts"] != "2" or "retry" not in record.speed.marks:
        problems.append("not told as a second attempt")
    if TELLTALE.encode() in seen.body or TELLTALE in str(seen.headers) or TELLTALE in json.dumps(as_json(record)):
        problems.append("something of the first is left")
    if (record.server_clock or {}).get("queue_ms") == 777_000:
        problems.append("the first one's clock is left")
    return problems
