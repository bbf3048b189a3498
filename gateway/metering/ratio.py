"""Ratios of sums that fade with time: they follow what a deployment does, and stay while it does nothing."""

from collections.abc import Sequence
from math import exp, isfinite

TAU_S = 3600.0


class FadingRatio:
    """Sum of values over sum of weights, fading with `TAU_S`. Sums of several places add exactly."""

    __slots__ = ("_at", "_over", "_under")

    def __init__(self) -> None:
        self._at = 0.0
        self._over = self._under = 0.0

    def add(self, over: float, under: float, now: float) -> None:
        """Books one sample, fading the older ones."""
        self._fade_to(now)
        self._over += over
        self._under += under

    def _fade_to(self, now: float) -> None:
        if now > self._at:
            fade = exp((self._at - now) / TAU_S)
            self._at = now
            self._over *= fade
            self._under *= fade

    def value(self, otherwise: float) -> float:
        """The ratio; `otherwise` while there is none."""
        return self._over / self._under if self._under > 0 else otherwise

    @property
    def known(self) -> float | None:
        """The ratio; None while there is none."""
        return self._over / self._under if self._under > 0 else None

    @property
    def weight(self) -> float:
        """The sum of weights, as of the last sample."""
        return self._under

    def merge(self, other: "FadingRatio") -> None:
        """Adds what another place has seen, each faded to the later of the two moments."""
        if not self._under:
            self._at = other._at
        self._fade_to(other._at)
        fade = exp((other._at - self._at) / TAU_S)
        self._over += other._over * fade
        self._under += other._under * fade

    def state(self, offset_s: float) -> list[float]:
        """The sums and their moment (plus `offset_s`), for `of_state`."""
        return [self._at + offset_s, self._over, self._under]

    @classmethod
    def of_state(cls, state: Sequence[float], offset_s: float, now: float) -> "FadingRatio":
        """What `state` told, with its moment back on this clock. Raises ValueError for anything else."""
        if len(state) != 3 or not all(isfinite(value) for value in state) or state[2] < 0:
            raise ValueError("no ratio")
        made = cls()
        made._at = min(state[0] - offset_s, now)
        made._over, made._under = state[1:]
        return made
