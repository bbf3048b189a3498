"""Streams that are still running, as evidence: what they have shown so far, and how long some are without a token."""

from math import log

from gateway.core.ports import StreamMeter
from gateway.metering.decay import Sample
from gateway.metering.quality import weight

# A stream says nothing of speed before its first seconds, and is asked anew every few.
FIRST_AFTER_S = 2.0
AGAIN_AFTER_S = 5.0
# Estimated tokens below which a rate is that of a few words.
_MIN_TOKENS = 8.0
# The rate is by estimated tokens, so it is believed less than one that was billed.
_ESTIMATED = 0.5
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

    def look(self, now: float) -> None:
        """Asks the meter; a sample is renewed only when it is due, so that a long stream weighs like one request."""
        progress = self.meter.progress(now)
        first = progress.first_token_s
        if first is None:
            self.bound = (progress.elapsed_s, progress.prompt_tokens or 0)
            return
        self.bound = None
        if progress.resting:
            self.sample = None
            return
        window_s = progress.elapsed_s - first
        if now < self._due or window_s < FIRST_AFTER_S or progress.tps is None or progress.tokens < _MIN_TOKENS:
            return
        self._due = now + AGAIN_AFTER_S
        self.sample = (log(max(progress.tps, _LEAST_TPS)), _ESTIMATED * weight(window_s), None)
