"""A ratio of sums whose memory is about fifty samples long."""

from collections.abc import Sequence
from math import isfinite

_FADE = 0.98


class FadingRatio:
    """Sum of values over sum of weights. Large samples count for more than small ones."""

    __slots__ = ("_over", "_under")

    def __init__(self) -> None:
        self._over = self._under = 0.0

    def add(self, over: float, under: float) -> None:
        """Books one sample, fading the older ones."""
        self._over = self._over * _FADE + over
        self._under = self._under * _FADE + under

    def value(self, otherwise: float) -> float:
        """The ratio; `otherwise` while there is none."""
        return self._over / self._under if self._under > 0 else otherwise

    @property
    def known(self) -> float | None:
        """The ratio; None while there is none."""
        return self._over / self._under if self._under > 0 else None

    def merge(self, other: "FadingRatio") -> None:
        """Adds what another place has seen."""
        self._over += other._over
        self._under += other._under

    def state(self) -> list[float]:
        """The sums, for `of_state`."""
        return [self._over, self._under]

    @classmethod
    def of_state(cls, state: Sequence[float]) -> "FadingRatio":
        """What `state` told. Raises ValueError for anything else."""
        if len(state) != 2 or not all(isfinite(value) for value in state) or state[1] < 0:
            raise ValueError("no ratio")
        made = cls()
        made._over, made._under = state
        return made
