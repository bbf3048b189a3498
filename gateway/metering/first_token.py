"""What a time to first token should be: a straight line over the uncached prompt tokens, learnt and fading."""

from collections.abc import Sequence
from math import exp, isfinite

TAU_S = 600.0
# Samples before the line predicts anything, and before it has a slope.
MIN_SAMPLES = 3.0
MIN_SLOPE_SAMPLES = 8.0
# Standard errors that a slope lies above 0.
SLOPE_ERRORS = 3.0
_LEAST_S = 0.001


class FirstTokenLine:
    """Decayed least squares of TTFT in seconds: `a + b * uncached prompt tokens`, with a and b never negative."""

    __slots__ = ("_at", "_count", "_x", "_xx", "_xy", "_y", "_yy")

    def __init__(self) -> None:
        self._at = 0.0
        self._count = self._x = self._xx = self._y = self._xy = self._yy = 0.0

    @property
    def count(self) -> float:
        """Samples by weight, as of the last one."""
        return self._count

    def predict(self, tokens: float) -> float | None:
        """Seconds; None before there are samples enough."""
        if self._count < MIN_SAMPLES:
            return None
        base, slope = self._line()
        return max(_LEAST_S, base + slope * tokens)

    def learn(self, ttft_s: float, tokens: float, weight: float, now: float) -> None:
        """Books one sample, fading the older ones."""
        self._fade_to(now)
        self._count += weight
        self._x += weight * tokens
        self._xx += weight * tokens * tokens
        self._y += weight * ttft_s
        self._xy += weight * tokens * ttft_s
        self._yy += weight * ttft_s * ttft_s

    def _fade_to(self, now: float) -> None:
        if now <= self._at:
            return
        fade = exp((self._at - now) / TAU_S)
        self._at = now
        self._count *= fade
        self._x *= fade
        self._xx *= fade
        self._y *= fade
        self._xy *= fade
        self._yy *= fade

    def merge(self, other: "FirstTokenLine") -> None:
        """Adds what another place has seen, each faded to the later of the two moments."""
        if not self._count:
            self._at = other._at
        self._fade_to(other._at)
        fade = exp((other._at - self._at) / TAU_S)
        self._count += other._count * fade
        self._x += other._x * fade
        self._xx += other._xx * fade
        self._y += other._y * fade
        self._xy += other._xy * fade
        self._yy += other._yy * fade

    def state(self, offset_s: float) -> list[float]:
        """The sums and their moment (plus `offset_s`), for `of_state`."""
        return [self._at + offset_s, self._count, self._x, self._xx, self._y, self._xy, self._yy]

    @classmethod
    def of_state(cls, state: Sequence[float], offset_s: float, now: float) -> "FirstTokenLine":
        """What `state` told, with its moment back on this clock. Raises ValueError for anything else."""
        if len(state) != 7 or not all(isfinite(value) for value in state) or min(state[1:]) < 0:
            raise ValueError("no first-token line")
        made = cls()
        made._at = min(state[0] - offset_s, now)
        made._count, made._x, made._xx, made._y, made._xy, made._yy = state[1:]
        return made

    def coefficients(self) -> tuple[float, float] | None:
        """Base and seconds per token; a slope of 0 is none: prompts of nearly one size, or waits that scatter more."""
        return None if self._count < MIN_SAMPLES else self._line()

    def _line(self) -> tuple[float, float]:
        mean_x, mean_y = self._x / self._count, self._y / self._count
        spread = self._xx / self._count - mean_x * mean_x
        # Prompts of nearly one size say nothing of the slope.
        if self._count < MIN_SLOPE_SAMPLES or spread < (0.1 * mean_x) ** 2 or spread <= 0:
            return mean_y, 0.0
        slope = (self._xy / self._count - mean_x * mean_y) / spread
        noise = self._yy / self._count - mean_y * mean_y - slope * slope * spread
        # A slope that noise alone would show as well is none: ten times the prompt would be predicted by chance.
        if slope * slope * spread * self._count < SLOPE_ERRORS**2 * max(0.0, noise):
            return mean_y, 0.0
        slope = min(max(0.0, slope), mean_y / mean_x)
        return mean_y - slope * mean_x, slope
