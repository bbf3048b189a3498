"""Streams that are still running, as evidence: what they have shown so far, and how long some are without a token."""

from collections.abc import Iterable
from math import log, sqrt

from gateway.core.ports import StreamMeter
from gateway.core.types import Estimate
from gateway.metering.decay import ENOUGH, Sample
from gateway.metering.page import Page
from gateway.metering.quality import weight

# A stream says nothing of speed before its first seconds, and is asked anew every few.
FIRST_AFTER_S = 2.0
AGAIN_AFTER_S = 5.0
# A wait that is judged before it ends.
_WORTH_JUDGING_S = 1.0
# Estimated tokens below which a rate is that of a few words.
_MIN_TOKENS = 8.0
# The rate is by estimated tokens, so it is believed less than one that was billed.
_ESTIMATED = 0.5
# Deviations within which an estimate from characters may be off, by what past answers have shown.
_DEVIATIONS = 2.0
# A stream that has stopped altogether still has a logarithm.
_LEAST_TPS = 0.1


class Watched:
    """One running stream. `sample` is its latest interim sample of ln tok/s, None before there is one."""

    __slots__ = ("_due", "bound", "meter", "sample")

    def __init__(self, meter: StreamMeter) -> None:
        self.meter = meter
        self.sample: Sample | None = None
        # Seconds without a token so far, and the prompt they are for.
        self.bound: tuple[float, int] | None = None
        self._due = 0.0

    def look(self, now: float) -> bool:
        """Asks the meter; True where that is news. A sample is renewed only when it is due: a stream is one request."""
        progress = self.meter.progress(now)
        first = progress.first_token_s
        if first is None:
            self.bound = (progress.elapsed_s, progress.prompt_tokens or 0)
            return progress.elapsed_s >= _WORTH_JUDGING_S
        self.bound = None
        if progress.resting:
            had, self.sample = self.sample is not None, None
            return had
        window_s = progress.elapsed_s - first
        if now < self._due or window_s < FIRST_AFTER_S or progress.tps is None or progress.tokens < _MIN_TOKENS:
            return False
        self._due = now + AGAIN_AFTER_S
        self.sample = (log(max(progress.tps, _LEAST_TPS)), _ESTIMATED * weight(window_s), None)
        return True


def interim(page: Page, baseline: Estimate | None, running: Iterable[Watched]) -> tuple[list[Sample], list[Sample]]:
    """Samples of ln tok/s, and of ln (wait / expected) where a wait is already longer than expected.

    Tokens are estimated from characters, and text of another kind has others: a rate is taken for the one nearest to
    the baseline that it can be, by how far single answers' estimates were off. Not known yet: it says nothing.
    """
    samples: list[Sample] = []
    late: list[Sample] = []
    off = _may_be_off(page)
    for watched in running:
        if watched.sample is not None and baseline is not None and off is not None:
            value, size, load = watched.sample
            samples.append((min(max(baseline.mean, value - off), value + off), size, load))
        if watched.bound is not None:
            waited_s, tokens = watched.bound
            expected = page.expected_s(tokens)
            if expected is not None and waited_s > expected:
                late.append((log(waited_s / expected), 1.0, None))
    return samples, late


def _may_be_off(page: Page) -> float | None:
    squares = page.estimate_spread
    return _DEVIATIONS * sqrt(squares.known) if squares.known is not None and squares.weight >= ENOUGH else None
