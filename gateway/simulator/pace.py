"""When tokens are due: gaps and first-token times as the script wants them at that moment."""

import math
from collections.abc import Callable
from random import Random

from gateway.simulator.script import Script, Ttft


def first_token_after(ttft: float | Ttft, prompt_tokens: int, rng: Random) -> float:
    """Seconds from the whole request to the first token."""
    if not isinstance(ttft, Ttft):
        return ttft
    drawn = ttft.median * math.exp(rng.gauss(0.0, ttft.sigma)) if ttft.sigma else ttft.median
    return drawn + ttft.per_1k_prompt_tokens * prompt_tokens / 1000


class Pace:
    """Gaps between chunks of one answer. Asked for one gap at a time, so that a sag reaches running streams.

    `override_tps`, once set, stands above the script.
    """

    __slots__ = ("_live", "_open_streams", "_rng", "override_tps")

    def __init__(self, live: Callable[[], Script], open_streams: Callable[[], int], rng: Random) -> None:
        self._live = live
        self._open_streams = open_streams
        self._rng = rng
        self.override_tps: float | None = None

    def gap(self, tokens: int) -> float:
        """Seconds it takes to make so many tokens now. A chunk is due when its last token is made."""
        script = self._live()
        tps = self.override_tps or script.tps
        if script.load is not None:
            tps /= 1 + self._open_streams() / script.load.k
        if not script.jitter:
            return tokens / tps
        return tokens / tps * max(0.0, self._rng.gauss(1.0, script.jitter))
