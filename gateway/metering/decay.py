"""Exponentially decayed sums: means whose memory fades, at several time constants side by side."""

from math import exp, sqrt

from gateway.core.types import Estimate

# The shortest memory with this many effective samples speaks.
ENOUGH = 8.0
# After this many time constants without a sample a memory is empty: what is left weighs under 2 %.
_FORGOTTEN_AFTER = 4.0
# Spread of ln speed between requests at a steady provider: one assumed sample, so that two that happen to agree
# do not claim certainty.
_PRIOR_VARIANCE = 0.25**2


class Decayed:
    """Weight, squared weight, value and squared value, fading with `tau_s`. Sums of several places add exactly."""

    __slots__ = ("_at", "_squares", "_sum", "_weight", "_weight2", "tau_s")

    def __init__(self, tau_s: float) -> None:
        self.tau_s = tau_s
        self._at = 0.0
        self._weight = self._weight2 = self._sum = self._squares = 0.0

    def add(self, value: float, weight: float, now: float) -> None:
        """Values that come with an older moment than the last one count as of now."""
        fade = exp(-max(0.0, now - self._at) / self.tau_s)
        self._weight = self._weight * fade + weight
        self._weight2 = self._weight2 * fade * fade + weight * weight
        self._sum = self._sum * fade + weight * value
        self._squares = self._squares * fade + weight * value * value
        self._at = max(self._at, now)

    def estimate(self, now: float) -> Estimate | None:
        """Mean, its standard error and the effective sample count; None while empty or forgotten."""
        if self._weight <= 0 or now - self._at > _FORGOTTEN_AFTER * self.tau_s:
            return None
        mean = self._sum / self._weight
        count = self._weight * self._weight / self._weight2
        spread = max(0.0, self._squares / self._weight - mean * mean)
        variance = (spread * count + _PRIOR_VARIANCE) / count
        return Estimate(mean=mean, error=sqrt(variance / count), count=count)


class Ladder:
    """The same samples at several time constants."""

    __slots__ = ("_rungs",)

    def __init__(self, *taus_s: float) -> None:
        self._rungs = tuple(Decayed(tau_s) for tau_s in sorted(taus_s))

    def add(self, value: float, weight: float, now: float) -> None:
        """Books one sample on every rung."""
        for rung in self._rungs:
            rung.add(value, weight, now)

    def estimate(self, now: float) -> Estimate | None:
        """Of the shortest memory with enough samples; of the longest where none has."""
        best: Estimate | None = None
        for rung in self._rungs:
            estimate = rung.estimate(now)
            if estimate is None:
                continue
            best = estimate
            if estimate.count >= ENOUGH:
                break
        return best
