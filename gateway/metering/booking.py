"""How a finished request is booked on the pages of the deployments it was tried at."""

from collections.abc import Mapping
from math import log

from gateway.core.errors import FAILURES
from gateway.core.record import AttemptRecord, GenerationRecord, Speed
from gateway.metering import quantities as q
from gateway.metering.first_token import FirstTokenLine
from gateway.metering.packing import Sheet
from gateway.metering.page import PLAIN, REASONING, WHOLE_TOOL, Page
from gateway.metering.sketch import bucket_of
from gateway.metering.slots import add

# The weight of a first token after idle minutes: a solo user has hardly any other, so it is kept, but believed less.
_COLD_WEIGHT = 0.25
# One frozen call must not bend the line: a sample counts at most so many times what was predicted.
_OUTLIER = 4.0
# How attempts end whose wait for a token was given up: the wait is a lower bound.
_GIVEN_UP = frozenset({"timeout_ttft", "timeout_total", "timeout_idle"})
_LEFT = frozenset({"cancelled", "lost"})
_RATIO_MIN_TOKENS = 8
# What ended before its kind was known: its quality says how, not what it was.
_KIND_UNKNOWN = frozenset({"error", "cancelled", "truncated", "corrupt", "estimate"})


def book_attempt(page: Page, attempt: AttemptRecord, record: GenerationRecord, now: float, *, answered: bool) -> None:
    """One attempt's end, and how long no token came. `answered`: its first token is booked with the measurement."""
    sheet = page.shelf.running(now + page.offset_s)
    page.booked += 1
    add(sheet, q.TALLY, _verdict(attempt))
    if attempt.cost_usd is not None:
        add(sheet, q.TALLY, q.PRICED)
        add(sheet, q.TALLY, q.COST_NANO_USD, round(attempt.cost_usd * 1e9))
    if not record.stream or answered:
        return
    size = q.size_of(record.tokens.input)
    if attempt.ttft_ms is not None:
        _count(sheet, q.TTFT + size, attempt.ttft_ms)
        _learn_first_token(page, attempt.ttft_ms, PLAIN, (_uncached(record), 1.0), now)
    elif _waited(attempt):
        _count(sheet, q.BOUND + size, attempt.duration_ms)
        _book_bound(page, attempt, record, now)


def book_answer(page: Page, record: GenerationRecord, now: float) -> None:
    """What was measured, on the page of what was served. Two answers in one stream have neither speed nor TTFT."""
    page.booked += 1
    if record.splice:
        return
    sheet = page.shelf.running(now + page.offset_s)
    _book_speed(page, sheet, record, now)
    _book_first_token(page, sheet, record, now)
    _count(sheet, q.TTFA, record.timing.ttfa_ms)
    if record.speed.quality == "ok":
        _count(sheet, q.CHARS, record.speed.chars_per_s)
        _count(sheet, q.GAP, record.timing.max_gap_ms)
    _book_ratio(page, record, now)
    _book_clock(page, record, now)


def book_quality(page: Page, record: GenerationRecord, now: float) -> None:
    """Every answer counts by its quality, with the deployment that was asked."""
    if record.speed.quality in q.QUALITIES:
        sheet = page.shelf.running(now + page.offset_s)
        add(sheet, q.TALLY, q.QUALITY + q.QUALITIES.index(record.speed.quality))


def _book_speed(page: Page, sheet: Sheet, record: GenerationRecord, now: float) -> None:
    """A rate is stated only where it is sound: by the client's clock at quality `ok`, or by the server's."""
    speed = record.speed
    rate, weight = speed.output_tps, speed.weight
    if rate is None or rate <= 0 or not weight or not _sound(speed):
        return
    load = record.in_flight
    page.speed.add(log(rate), weight, now, load)
    if not page.frozen:
        page.baseline.add(log(rate), weight, now, load)
    _count(sheet, q.SPEED + q.load_of(load), rate)
    if speed.source == "server":
        add(sheet, q.TALLY, q.SERVER_SAMPLES)


def _sound(speed: Speed) -> bool:
    return speed.quality == "ok" or speed.source == "server"


def _book_first_token(page: Page, sheet: Sheet, record: GenerationRecord, now: float) -> None:
    """Every stream that reached its first token counts, whatever its speed quality."""
    ttft_ms = record.timing.ttft_ms
    if ttft_ms is None or ttft_ms <= 0:
        return
    _count(sheet, q.TTFT + q.size_of(record.tokens.input), ttft_ms)
    weight = _COLD_WEIGHT if "cold" in record.speed.marks else 1.0
    _learn_first_token(page, ttft_ms, _class_of(page, record), (_uncached(record), weight), now)


def _learn_first_token(page: Page, ttft_ms: float, kind: str, sized: tuple[int, float], now: float) -> None:
    """`sized`: the prompt's uncached tokens, and the weight."""
    tokens, weight = sized
    line = page.lines.setdefault(kind, FirstTokenLine())
    seconds = ttft_ms / 1000
    expected = line.predict(tokens)
    if expected is not None:
        page.residual.add(log(seconds / expected), weight, now)
        seconds = min(seconds, _OUTLIER * expected)
    if not page.frozen:
        line.learn(seconds, tokens, weight, now)


def _class_of(page: Page, record: GenerationRecord) -> str:
    quality, tokens, chars = record.speed.quality, record.tokens, record.chars
    if quality == "whole_tool":
        return WHOLE_TOOL
    if quality == "hidden_reasoning" or (tokens.source == "usage" and (tokens.reasoning or 0) > chars.reasoning):
        return REASONING
    if quality in _KIND_UNKNOWN and not chars.reasoning:
        # A stream that was left early may have thought in silence first: taken for what this deployment mostly does.
        return max(page.lines, key=lambda kind: page.lines[kind].count, default=PLAIN)
    return PLAIN


def _book_bound(page: Page, attempt: AttemptRecord, record: GenerationRecord, now: float) -> None:
    """A wait that was given up says something where it was longer than expected: at least so late."""
    expected = page.expected_s(_uncached(record))
    waited_ms = attempt.duration_ms
    if expected is not None and waited_ms is not None and waited_ms / 1000 > expected:
        page.residual.add(log(waited_ms / 1000 / expected), 1.0, now)


def _waited(attempt: AttemptRecord) -> bool:
    """It was sent (there was an exchange) and was given up, by us or by the client, before a token came."""
    if attempt.pool_wait_ms is None or not attempt.duration_ms:
        return False
    return attempt.error in _GIVEN_UP or attempt.outcome in _LEFT


def _verdict(attempt: AttemptRecord) -> int:
    if attempt.outcome == "ok":
        return q.OK
    if attempt.error == "rate_limited":
        return q.RATE_LIMITED
    kind = FAILURES.get(attempt.error or "")
    if kind is None or not kind.charges or _ours(attempt):
        return q.UNCHARGED
    return q.ERRORS


def _ours(attempt: AttemptRecord) -> bool:
    """Our own pool was full: nothing was sent, so nobody answered that they are overloaded."""
    return attempt.error == "overloaded" and attempt.pool_wait_ms is None


def _uncached(record: GenerationRecord) -> int:
    return max(0, (record.tokens.input or 0) - (record.tokens.cached or 0))


def _book_ratio(page: Page, record: GenerationRecord, now: float) -> None:
    """What the estimate would have been is held against what was billed, then the ratio learns."""
    tokens, chars = record.tokens, record.chars
    output = tokens.output or 0
    if tokens.source != "usage" or output < _RATIO_MIN_TOKENS or record.outcome != "ok":
        return
    seen = chars.content + chars.reasoning + chars.tool
    # Hidden or summarised reasoning has tokens without their characters.
    if seen and record.speed.quality != "hidden_reasoning" and (tokens.reasoning or 0) <= chars.reasoning:
        estimate = seen / page.chars_per_token()
        page.estimates.add(estimate, output, now)
        page.estimate_spread.add(log(estimate / output) ** 2, 1.0, now)
        page.ratio.add(seen, output, now)


def _book_clock(page: Page, record: GenerationRecord, now: float) -> None:
    clock: Mapping[str, float] = record.server_clock or {}
    ratio, difference = clock.get("decode_ratio"), clock.get("ttft_difference_ms")
    if ratio is not None:
        page.clock_ratio.add(ratio, 1.0, now)
    if difference is not None:
        page.clock_ttft.add(difference, 1.0, now)


def _count(sheet: Sheet, quantity: int, value: float | None) -> None:
    bucket = None if value is None else bucket_of(value)
    if bucket is not None:
        add(sheet, quantity, bucket)
