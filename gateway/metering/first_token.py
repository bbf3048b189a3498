"""What a time to first token should be: a straight line over the uncached prompt tokens, learnt and fading."""

from math import exp

TAU_S = 600.0
# Samples before the line predicts anything, and before it has a slope.
MIN_SAMPLES = 3.0
MIN_SLOPE_SAMPLES = 8.0
# One frozen call must not bend the line: a sample counts at most so many times what was predicted.
_OUTLIER = 4.0
_LEAST_S = 0.001


class FirstTokenLine:
    """Decayed least squares of TTFT in seconds: `a + b * uncached prompt tokens`, with a and b never negative."""

    __slots__ = ("_at", "_count", "_x", "_xx", "_xy", "_y")

    def __init__(self) -> None:
        self._at = 0.0
        self._count = self._x = self._xx = self._y = self._xy = 0.0

    def predict(self, tokens: float) -> float | None:
        """Seconds; None before there are samples enough."""
        if self._count < MIN_SAMPLES:
            return None
        base, slope = self._line()
        return max(_LEAST_S, base + slope * tokens)

    def learn(self, ttft_s: float, tokens: float, weight: float, now: float) -> None:
        """Books one sample, fading the older ones."""
        expected = self.predict(tokens)
        if expected is not None:
            ttft_s = min(ttft_s, _OUTLIER * expected)
        fade = exp(-max(0.0, now - self._at) / TAU_S)
        self._at = max(self._at, now)
        self._count = self._count * fade + weight
        self._x = self._x * fade + weight * tokens
        self._xx = self._xx * fade + weight * tokens * tokens
        self._y = self._y * fade + weight * ttft_s
        self._xy = self._xy * fade + weight * tokens * ttft_s

    def _line(self) -> tuple[float, float]:
        mean_x, mean_y = self._x / self._count, self._y / self._count
        spread = self._xx / self._count - mean_x * mean_x
        # Prompts of nearly one size say nothing of the slope.
        if self._count < MIN_SLOPE_SAMPLES or spread < (0.1 * mean_x) ** 2 or spread <= 0:
            return mean_y, 0.0
        slope = (self._xy / self._count - mean_x * mean_y) / spread
        slope = min(max(0.0, slope), mean_y / mean_x)
        return mean_y - slope * mean_x, slope
