"""Exponentially decayed sums: means whose memory fades, at several time constants side by side."""

from collections.abc import Sequence
from math import exp, isfinite, sqrt

from gateway.core.types import Estimate

# The shortest memory with this many effective samples speaks.
ENOUGH = 8.0
# After this many time constants without a sample a memory is empty: what is left weighs under 2 %.
_FORGOTTEN_AFTER = 4.0
# Spread of ln speed between requests at a steady provider: one assumed sample, so that two that happen to agree
# do not claim certainty.
_PRIOR_VARIANCE = 0.25**2


# One sample: value, weight, and the attempts under way when it began (None: not known).
Sample = tuple[float, float, int | None]


class Decayed:
    """Weight, squared weight, value, squared value, load: fading with `tau_s`. Sums of several places add exactly."""

    __slots__ = ("_at", "_load", "_load_weight", "_squares", "_sum", "_weight", "_weight2", "tau_s")

    def __init__(self, tau_s: float) -> None:
        self.tau_s = tau_s
        self._at = 0.0
        self._weight = self._weight2 = self._sum = self._squares = 0.0
        self._load = self._load_weight = 0.0

    def add(self, value: float, weight: float, now: float, load: int | None = None) -> None:
        """Values that come with an older moment than the last one count as of now."""
        self._fade_to(now)
        self._weight += weight
        self._weight2 += weight * weight
        self._sum += weight * value
        self._squares += weight * value * value
        if load is not None:
            self._load += weight * load
            self._load_weight += weight

    def _fade_to(self, now: float) -> None:
        if now <= self._at:
            return
        fade = exp((self._at - now) / self.tau_s)
        self._at = now
        self._weight *= fade
        self._weight2 *= fade * fade
        self._sum *= fade
        self._squares *= fade
        self._load *= fade
        self._load_weight *= fade

    def merge(self, other: "Decayed") -> None:
        """Adds what another place has seen, each faded to the later of the two moments."""
        if not self._weight:
            self._at = other._at
        self._fade_to(other._at)
        fade = exp((other._at - self._at) / self.tau_s)
        self._weight += other._weight * fade
        self._weight2 += other._weight2 * fade * fade
        self._sum += other._sum * fade
        self._squares += other._squares * fade
        self._load += other._load * fade
        self._load_weight += other._load_weight * fade

    def state(self, offset_s: float) -> list[float]:
        """The sums and their moment (plus `offset_s`), for `of_state`."""
        sums = [self._weight, self._weight2, self._sum, self._squares, self._load, self._load_weight]
        return [self._at + offset_s, *sums]

    @classmethod
    def of_state(cls, tau_s: float, state: Sequence[float], offset_s: float, now: float) -> "Decayed":
        """What `state` told, with its moment back on this clock. Raises ValueError for anything else."""
        if len(state) != 7 or not all(isfinite(value) for value in state) or min(state[1], state[2]) < 0:
            raise ValueError("no decayed sums")
        made = cls(tau_s)
        made._at = min(state[0] - offset_s, now)
        made._weight, made._weight2, made._sum, made._squares, made._load, made._load_weight = state[1:]
        return made

    @property
    def mean_load(self) -> float | None:
        """Attempts that were under way when these samples began, on average."""
        return self._load / self._load_weight if self._load_weight > 0 else None

    def estimate(self, now: float, further: Sequence[Sample] = ()) -> Estimate | None:
        """Mean, its standard error and the effective sample count; None while empty or forgotten.

        `further` samples are counted as of now, for this estimate only.
        """
        forgotten = now - self._at > _FORGOTTEN_AFTER * self.tau_s
        fade = 0.0 if forgotten else exp(min(0.0, (self._at - now) / self.tau_s)) if further else 1.0
        weight, weight2 = self._weight * fade, self._weight2 * fade * fade
        total, squares = self._sum * fade, self._squares * fade
        for value, size, _ in further:
            weight += size
            weight2 += size * size
            total += size * value
            squares += size * value * value
        if weight <= 0:
            return None
        mean = total / weight
        count = weight * weight / weight2
        spread = max(0.0, squares / weight - mean * mean)
        variance = (spread * count + _PRIOR_VARIANCE) / count
        return Estimate(mean=mean, error=sqrt(variance / count), count=count)


class Ladder:
    """The same samples at several time constants."""

    __slots__ = ("rungs",)

    def __init__(self, *taus_s: float) -> None:
        self.rungs = tuple(Decayed(tau_s) for tau_s in sorted(taus_s))

    def add(self, value: float, weight: float, now: float, load: int | None = None) -> None:
        """Books one sample on every rung."""
        for rung in self.rungs:
            rung.add(value, weight, now, load)

    def merge(self, other: "Ladder") -> None:
        """Adds another ladder of the same time constants."""
        for rung, theirs in zip(self.rungs, other.rungs, strict=True):
            rung.merge(theirs)

    def estimate(self, now: float, further: Sequence[Sample] = ()) -> Estimate | None:
        """Of the shortest memory with enough samples; of the longest where none has."""
        return self._speaking(now, further)[0]

    def mean_load(self, now: float) -> float | None:
        """Of the same memory."""
        rung = self._speaking(now, ())[1]
        return rung.mean_load if rung is not None else None

    def _speaking(self, now: float, further: Sequence[Sample]) -> tuple[Estimate | None, Decayed | None]:
        best: tuple[Estimate | None, Decayed | None] = (None, None)
        for rung in self.rungs:
            estimate = rung.estimate(now, further)
            if estimate is None:
                continue
            best = (estimate, rung)
            if estimate.count >= ENOUGH:
                break
        return best
