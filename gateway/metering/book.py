"""What is known of each deployment's speed: fed with every record, read by routing, the meter and tables."""

from dataclasses import dataclass, field
from math import log

from gateway.core.ports import Clock
from gateway.core.record import GenerationRecord
from gateway.core.types import SpeedEvidence, SpeedView
from gateway.metering.decay import Decayed, Ladder
from gateway.metering.first_token import FirstTokenLine
from gateway.metering.meter import CHARS_PER_TOKEN
from gateway.metering.sketch import WindowedCounts, quantiles

WINDOWS_S = (15.0, 60.0, 300.0)
BASELINE_S = 3600.0
COLD_AFTER_S = 300.0
# The weight of a first token after idle minutes: a solo user has hardly any other, so it is kept, but believed less.
_COLD_WEIGHT = 0.25
# How fast the ratio of characters to tokens follows: the memory is about fifty answers long.
_RATIO_FADE = 0.98
_RATIO_MIN_TOKENS = 8
_RATIO_RANGE = (0.5, 12.0)


@dataclass(slots=True)
class _Page:
    """One deployment. `lines` and residuals are kept by class: a silent think is no slow prefill."""

    speed: Ladder = field(default_factory=lambda: Ladder(*WINDOWS_S))
    baseline: Decayed = field(default_factory=lambda: Decayed(BASELINE_S))
    residual: Ladder = field(default_factory=lambda: Ladder(*WINDOWS_S))
    lines: dict[str, FirstTokenLine] = field(default_factory=dict)
    output_tps: WindowedCounts = field(default_factory=WindowedCounts)
    ttft_ms: WindowedCounts = field(default_factory=WindowedCounts)
    chars: float = 0.0
    tokens: float = 0.0
    last_call: float | None = None
    frozen: bool = False


class SpeedBook:
    """A `Listener` and the `SpeedEvidenceSource`. All calls are local and quick; `clock` gives monotonic seconds.

    Keeps at most `capacity` deployments; the one heard of longest ago makes room.
    """

    def __init__(self, clock: Clock, capacity: int = 2000) -> None:
        self._clock = clock
        self._capacity = capacity
        self._pages: dict[str, _Page] = {}

    def record(self, record: GenerationRecord) -> None:
        """Books the committed attempt's measurement under its deployment, and that every tried one was called."""
        now = self._clock()
        for attempt in record.attempts:
            self._page(attempt.deployment).last_call = now
        if record.deployment is None:
            return
        page = self._page(record.deployment)
        page.last_call = now
        _book_speed(page, record, now)
        _book_first_token(page, record, now)
        _book_ratio(page, record)

    def evidence(self, deployment_id: str, now: float) -> SpeedEvidence:
        """What sag is judged on."""
        page = self._pages.get(deployment_id)
        if page is None:
            return SpeedEvidence()
        return SpeedEvidence(
            speed=page.speed.estimate(now), baseline=page.baseline.estimate(now), ttft=page.residual.estimate(now)
        )

    def freeze(self, deployment_id: str, frozen: bool) -> None:
        """While frozen neither the baseline nor the expected TTFT learns: a sag must not become the new normal."""
        if frozen or deployment_id in self._pages:
            self._page(deployment_id).frozen = frozen

    def view(self, deployment_id: str, now: float) -> SpeedView:
        """Quantiles of the last five minutes."""
        page = self._pages.get(deployment_id)
        if page is None:
            return SpeedView()
        speeds = page.output_tps.merged(now)
        (speed,) = quantiles(speeds, (0.5,))
        ttft_p50, ttft_p95 = quantiles(page.ttft_ms.merged(now), (0.5, 0.95))
        return SpeedView(samples=sum(speeds.values()), output_tps_p50=speed, ttft_ms_p50=ttft_p50, ttft_ms_p95=ttft_p95)

    def predicted_ttft_s(self, deployment_id: str, uncached_tokens: int) -> float | None:
        """Expected seconds to the first token of a plain answer; None before three were seen."""
        page = self._pages.get(deployment_id)
        line = page.lines.get("plain") if page else None
        return line.predict(uncached_tokens) if line else None

    def chars_per_token(self, deployment_id: str) -> float:
        """Learnt from that deployment's own past usage; 4 before there was any."""
        page = self._pages.get(deployment_id)
        if page is None or page.tokens <= 0:
            return CHARS_PER_TOKEN
        low, high = _RATIO_RANGE
        return min(max(page.chars / page.tokens, low), high)

    def cold(self, deployment_id: str, now: float) -> bool:
        """No call of it ended within five minutes."""
        page = self._pages.get(deployment_id)
        return page is None or page.last_call is None or now - page.last_call > COLD_AFTER_S

    def _page(self, deployment_id: str) -> _Page:
        page = self._pages.pop(deployment_id, None)
        if page is None:
            page = _Page()
            if len(self._pages) >= self._capacity:
                del self._pages[next(iter(self._pages))]
        self._pages[deployment_id] = page
        return page


def _book_speed(page: _Page, record: GenerationRecord, now: float) -> None:
    """A rate is stated only where it is sound: by the client's clock at quality `ok`, or by the server's."""
    speed = record.speed
    rate, weight = speed.output_tps, speed.weight
    if rate is None or rate <= 0 or not weight or not (speed.quality == "ok" or speed.source == "server"):
        return
    page.speed.add(log(rate), weight, now)
    if not page.frozen:
        page.baseline.add(log(rate), weight, now)
    page.output_tps.add(rate, now)


def _book_first_token(page: _Page, record: GenerationRecord, now: float) -> None:
    """Every stream that reached its first token counts, whatever its speed quality."""
    ttft_ms = record.timing.ttft_ms
    if ttft_ms is None or ttft_ms <= 0:
        return
    page.ttft_ms.add(ttft_ms, now)
    weight = _COLD_WEIGHT if "cold" in record.speed.marks else 1.0
    tokens = max(0, (record.tokens.input or 0) - (record.tokens.cached or 0))
    line = page.lines.setdefault(_class_of(record), FirstTokenLine())
    expected = line.predict(tokens)
    if expected is not None:
        page.residual.add(log(ttft_ms / 1000 / expected), weight, now)
    if not page.frozen:
        line.learn(ttft_ms / 1000, tokens, weight, now)


def _class_of(record: GenerationRecord) -> str:
    if record.speed.quality == "whole_tool":
        return "whole_tool"
    return "reasoning" if record.speed.quality == "hidden_reasoning" else "plain"


def _book_ratio(page: _Page, record: GenerationRecord) -> None:
    tokens, chars = record.tokens, record.chars
    output = tokens.output or 0
    # Hidden or summarised reasoning has tokens without their characters.
    if tokens.source != "usage" or output < _RATIO_MIN_TOKENS or record.outcome != "ok":
        return
    seen = chars.content + chars.reasoning + chars.tool
    if seen and record.speed.quality != "hidden_reasoning" and (tokens.reasoning or 0) <= chars.reasoning:
        page.chars = page.chars * _RATIO_FADE + seen
        page.tokens = page.tokens * _RATIO_FADE + output
