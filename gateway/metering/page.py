"""The page of one deployment: everything that is kept of it, and how two pages add up."""

from gateway.metering.decay import Decayed, Ladder
from gateway.metering.figures import Told, told
from gateway.metering.first_token import FirstTokenLine
from gateway.metering.meter import CHARS_PER_TOKEN
from gateway.metering.ratio import FadingRatio
from gateway.metering.slots import FINEST_S, LEVELS, Shelf, level_of

WINDOWS_S = (15.0, 60.0, 300.0)
BASELINE_S = 3600.0
_RATIO_RANGE = (0.5, 12.0)
CLASSES = PLAIN, REASONING, WHOLE_TOOL = ("plain", "reasoning", "whole_tool")


class Page:
    """One deployment. Moments are monotonic seconds; slots are counted from `offset_s`, so that hours are the wall's.

    `lines` and the residuals from them are kept by class: a silent think is no slow prefill.
    """

    __slots__ = (
        "_told",
        "baseline",
        "booked",
        "clock_ratio",
        "clock_ttft",
        "estimate_spread",
        "estimates",
        "frozen",
        "last_call",
        "lines",
        "offset_s",
        "ratio",
        "residual",
        "shelf",
        "speed",
    )

    def __init__(self, offset_s: float = 0.0) -> None:
        self.offset_s = offset_s
        self.speed = Ladder(*WINDOWS_S)
        self.baseline = Decayed(BASELINE_S)
        self.residual = Ladder(*WINDOWS_S)
        self.lines: dict[str, FirstTokenLine] = {}
        self.shelf = Shelf()
        # Characters over tokens billed; tokens estimated over tokens billed, and the mean square of its logarithm;
        # our clock against the provider's.
        self.ratio, self.estimates, self.estimate_spread = FadingRatio(), FadingRatio(), FadingRatio()
        self.clock_ratio, self.clock_ttft = FadingRatio(), FadingRatio()
        # Attempts and answers booked so far, and the windows as they were last told.
        self.booked = 0
        self._told: dict[float, Told] = {}
        self.last_call: float | None = None
        self.frozen = False

    def chars_per_token(self) -> float:
        """Learnt from past usage; 4 before there was any."""
        low, high = _RATIO_RANGE
        return min(max(self.ratio.value(CHARS_PER_TOKEN), low), high)

    def expected_s(self, tokens: float) -> float | None:
        """The longest wait that any class of answer leads one to expect; None before anything is known."""
        expected = [line.predict(tokens) for line in self.lines.values()]
        return max((seconds for seconds in expected if seconds is not None), default=None)

    def told(self, seconds: float, now: float) -> Told:
        """The figures of a window: those that were told last, where they hold."""
        moment = now + self.offset_s
        slots = int(moment // FINEST_S), int(moment // LEVELS[level_of(seconds)][0])
        known = self._told.get(seconds)
        if known is None or not known.holds(slots, self.booked):
            known = self._told[seconds] = told(self.shelf.window(seconds, moment), slots, self.booked)
        return known

    def merge(self, other: "Page") -> None:
        """Adds another page of the same deployment and the same `offset_s`. Whose moments are later does not matter."""
        self.speed.merge(other.speed)
        self.baseline.merge(other.baseline)
        self.residual.merge(other.residual)
        for kind, line in other.lines.items():
            self.lines.setdefault(kind, FirstTokenLine()).merge(line)
        self.shelf.merge(other.shelf)
        self._told.clear()
        theirs = other.ratios()
        for name, ratio in self.ratios().items():
            ratio.merge(theirs[name])

    def ratios(self) -> dict[str, FadingRatio]:
        """By the names they are remembered by."""
        return {
            "chars_per_token": self.ratio,
            "estimates": self.estimates,
            "estimate_spread": self.estimate_spread,
            "clock_decode": self.clock_ratio,
            "clock_ttft": self.clock_ttft,
        }
