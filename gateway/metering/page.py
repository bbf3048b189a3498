"""The page of one deployment: everything that is kept of it, how a record is booked, and how two pages add up."""

from collections.abc import Mapping
from math import log

from gateway.core.errors import FAILURES
from gateway.core.record import AttemptRecord, GenerationRecord, Speed
from gateway.metering import quantities as q
from gateway.metering.decay import Decayed, Ladder
from gateway.metering.first_token import FirstTokenLine
from gateway.metering.meter import CHARS_PER_TOKEN
from gateway.metering.ratio import FadingRatio
from gateway.metering.sketch import bucket_of
from gateway.metering.slots import Level, Sheet, add

WINDOWS_S = (15.0, 60.0, 300.0)
BASELINE_S = 3600.0
HOUR_S = 3600.0
# What a window is summed from: slots of (seconds, how many). The first that is long enough answers.
LEVELS = ((30.0, 11), (300.0, 13), (HOUR_S, 25), (6 * HOUR_S, 29))
# Hours that may pass until they are stored.
_OWN_HOURS = 4
# The weight of a first token after idle minutes: a solo user has hardly any other, so it is kept, but believed less.
_COLD_WEIGHT = 0.25
# One frozen call must not bend the line: a sample counts at most so many times what was predicted.
_OUTLIER = 4.0
# How attempts end whose wait for a token was given up: the wait is a lower bound.
_GIVEN_UP = frozenset({"timeout_ttft", "timeout_total", "timeout_idle"})
_LEFT = frozenset({"cancelled", "lost"})
_RATIO_MIN_TOKENS = 8
_RATIO_RANGE = (0.5, 12.0)
CLASSES = ("plain", "reasoning", "whole_tool")


class Page:
    """One deployment. `lines` and residuals are kept by class: a silent think is no slow prefill.

    Moments are monotonic seconds; slots are counted from `offset_s`, so that an hour is an hour of the wall clock.
    """

    __slots__ = (
        "baseline",
        "clock_ratio",
        "clock_ttft",
        "estimates",
        "frozen",
        "last_call",
        "levels",
        "lines",
        "offset_s",
        "own_hours",
        "ratio",
        "residual",
        "speed",
    )

    def __init__(self, offset_s: float = 0.0) -> None:
        self.offset_s = offset_s
        self.speed = Ladder(*WINDOWS_S)
        self.baseline = Decayed(BASELINE_S)
        self.residual = Ladder(*WINDOWS_S)
        self.lines: dict[str, FirstTokenLine] = {}
        self.levels = tuple(Level(slot_s, kept) for slot_s, kept in LEVELS)
        # What this process counted, without what it was given: what two processes store must not count twice.
        self.own_hours = Level(HOUR_S, _OWN_HOURS)
        # Characters over tokens billed; tokens estimated over tokens billed; our clock against the provider's.
        self.ratio, self.estimates = FadingRatio(), FadingRatio()
        self.clock_ratio, self.clock_ttft = FadingRatio(), FadingRatio()
        self.last_call: float | None = None
        self.frozen = False

    def sheets(self, now: float) -> list[Sheet]:
        """The running sheet of every level."""
        moment = now + self.offset_s
        return [*(level.running(moment) for level in self.levels), self.own_hours.running(moment)]

    def take_hour(self, hour: int, sheet: Sheet, now: float) -> None:
        """Adds an hour of an earlier process, numbered from the epoch; what is too old or of the future is left out."""
        moment = now + self.offset_s
        if hour * HOUR_S <= moment:
            for level in self.levels:
                if level.slot_s >= HOUR_S:
                    level.take(int(hour * HOUR_S // level.slot_s), sheet, moment)

    def window(self, seconds: float, now: float) -> Sheet:
        """All that was counted in the last so many seconds, to one slot."""
        moment = now + self.offset_s
        for level, (slot_s, kept) in zip(self.levels, LEVELS, strict=True):
            if seconds <= slot_s * (kept - 1):
                return level.merged(moment, None if seconds == slot_s * (kept - 1) else seconds)
        return self.levels[-1].merged(moment)

    def chars_per_token(self) -> float:
        """Learnt from past usage; 4 before there was any."""
        low, high = _RATIO_RANGE
        return min(max(self.ratio.value(CHARS_PER_TOKEN), low), high)

    def expected_s(self, tokens: float) -> float | None:
        """The longest wait that any class of answer leads one to expect; None before anything is known."""
        expected = [line.predict(tokens) for line in self.lines.values()]
        return max((seconds for seconds in expected if seconds is not None), default=None)

    def merge(self, other: "Page") -> None:
        """Adds another page of the same deployment and the same `offset_s`. Whose slots are older does not matter."""
        self.speed.merge(other.speed)
        self.baseline.merge(other.baseline)
        self.residual.merge(other.residual)
        for kind, line in other.lines.items():
            self.lines.setdefault(kind, FirstTokenLine()).merge(line)
        for mine, theirs in zip(self.levels, other.levels, strict=True):
            mine.absorb(theirs)
        self.own_hours.absorb(other.own_hours)
        theirs_by_name = ratios_of(other)
        for name, ratio in ratios_of(self).items():
            ratio.merge(theirs_by_name[name])


def book_attempt(page: Page, attempt: AttemptRecord, record: GenerationRecord, now: float) -> None:
    """One attempt's end, and its first token or how long none came."""
    sheets = page.sheets(now)
    _tally(sheets, _verdict(attempt))
    _tally_cost(sheets, attempt.cost_usd)
    if not record.stream or record.splice:
        return
    size = q.size_of(record.tokens.input)
    if attempt.ttft_ms is not None:
        _count(sheets, q.TTFT + size, attempt.ttft_ms)
    elif _waited(attempt):
        _count(sheets, q.BOUND + size, attempt.duration_ms)
        _book_bound(page, attempt, record, now)


def book_answer(page: Page, record: GenerationRecord, now: float, *, served_here: bool) -> None:
    """The measurement of the attempt that answered. `served_here` False: what was served is booked elsewhere."""
    sheets = page.sheets(now)
    _tally_quality(sheets, record.speed.quality)
    if served_here and not record.splice:
        book_speed(page, record, now)
        _book_first_token(page, record, now)
        _book_moments(sheets, record)
    _book_ratio(page, record)
    _book_clock(page, record)


def book_speed(page: Page, record: GenerationRecord, now: float) -> None:
    """A rate is stated only where it is sound: by the client's clock at quality `ok`, or by the server's."""
    speed = record.speed
    rate, weight = speed.output_tps, speed.weight
    if rate is None or rate <= 0 or not weight or not _sound(speed):
        return
    load = record.in_flight
    page.speed.add(log(rate), weight, now, load)
    if not page.frozen:
        page.baseline.add(log(rate), weight, now, load)
    sheets = page.sheets(now)
    _count(sheets, q.SPEED + q.load_of(load), rate)
    if speed.source == "server":
        _tally(sheets, q.SERVER_SAMPLES)


def _sound(speed: Speed) -> bool:
    return speed.quality == "ok" or speed.source == "server"


def _book_moments(sheets: list[Sheet], record: GenerationRecord) -> None:
    _count(sheets, q.TTFA, record.timing.ttfa_ms)
    if record.speed.quality == "ok":
        _count(sheets, q.CHARS, record.speed.chars_per_s)
        _count(sheets, q.GAP, record.timing.max_gap_ms)


def _book_first_token(page: Page, record: GenerationRecord, now: float) -> None:
    """Every stream that reached its first token counts, whatever its speed quality."""
    ttft_ms = record.timing.ttft_ms
    if ttft_ms is None or ttft_ms <= 0:
        return
    weight = _COLD_WEIGHT if "cold" in record.speed.marks else 1.0
    tokens = _uncached(record)
    line = page.lines.setdefault(_class_of(record), FirstTokenLine())
    seconds = ttft_ms / 1000
    expected = line.predict(tokens)
    if expected is not None:
        page.residual.add(log(seconds / expected), weight, now)
        seconds = min(seconds, _OUTLIER * expected)
    if not page.frozen:
        line.learn(seconds, tokens, weight, now)


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
    return q.ERRORS if kind is not None and kind.charges else q.UNCHARGED


def _uncached(record: GenerationRecord) -> int:
    return max(0, (record.tokens.input or 0) - (record.tokens.cached or 0))


def _class_of(record: GenerationRecord) -> str:
    if record.speed.quality == "whole_tool":
        return "whole_tool"
    return "reasoning" if record.speed.quality == "hidden_reasoning" else "plain"


def _book_ratio(page: Page, record: GenerationRecord) -> None:
    tokens, chars = record.tokens, record.chars
    output = tokens.output or 0
    # Hidden or summarised reasoning has tokens without their characters.
    if tokens.source != "usage" or output < _RATIO_MIN_TOKENS or record.outcome != "ok" or record.splice:
        return
    seen = chars.content + chars.reasoning + chars.tool
    if seen and record.speed.quality != "hidden_reasoning" and (tokens.reasoning or 0) <= chars.reasoning:
        page.estimates.add(seen / page.chars_per_token(), output)
        page.ratio.add(seen, output)


def _book_clock(page: Page, record: GenerationRecord) -> None:
    clock: Mapping[str, float] = record.server_clock or {}
    ratio, difference = clock.get("decode_ratio"), clock.get("ttft_difference_ms")
    if ratio is not None:
        page.clock_ratio.add(ratio, 1.0)
    if difference is not None:
        page.clock_ttft.add(difference, 1.0)


def _count(sheets: list[Sheet], quantity: int, value: float | None) -> None:
    bucket = None if value is None else bucket_of(value)
    if bucket is not None:
        for sheet in sheets:
            add(sheet, quantity, bucket)


def _tally(sheets: list[Sheet], what: int, count: int = 1) -> None:
    for sheet in sheets:
        add(sheet, q.TALLY, what, count)


def _tally_quality(sheets: list[Sheet], quality: str | None) -> None:
    if quality in q.QUALITIES:
        _tally(sheets, q.QUALITY + q.QUALITIES.index(quality))


def _tally_cost(sheets: list[Sheet], cost_usd: float | None) -> None:
    if cost_usd is not None:
        _tally(sheets, q.PRICED)
        _tally(sheets, q.COST_NANO_USD, round(cost_usd * 1e9))


def ratios_of(page: Page) -> dict[str, FadingRatio]:
    """The ratios by name, for what is remembered."""
    return {
        "chars_per_token": page.ratio,
        "estimates": page.estimates,
        "clock_decode": page.clock_ratio,
        "clock_ttft": page.clock_ttft,
    }
