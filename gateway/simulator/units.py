"""Numbers as a script writes them: durations `80ms`, shares `5%`, sizes `10MB`, each with its range."""

import math
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

_WRITTEN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%]+)")
_UNITS = MappingProxyType(
    {
        "duration": MappingProxyType({"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}),
        "share": MappingProxyType({"%": 0.01}),
        "size": MappingProxyType({"B": 1, "KB": 1_000, "MB": 1_000_000}),
        "number": MappingProxyType({}),
    }
)


@dataclass(frozen=True, slots=True)
class Number:
    """What a numeric field takes: its unit family and its range, both ends included."""

    family: str
    low: float
    high: float

    def read(self, value: object, whole: bool) -> float:
        """The value in the base unit (seconds, share of 1, bytes); ValueError says what is allowed."""
        found = self._amount(value)
        if found is None or not math.isfinite(found) or not self.low <= found <= self.high:
            raise ValueError(f"{value!r} is not {self.says(whole)}")
        if not whole:
            return float(found)
        if found != int(found):
            raise ValueError(f"{value!r} is not {self.says(whole)}")
        return int(found)

    def says(self, whole: bool) -> str:
        """What is allowed, in words."""
        examples = {
            "duration": " of seconds (or 80ms, 5s, 2m)",
            "share": " (or 5%)",
            "size": " of bytes (or 10KB, 2MB)",
        }
        noun = "a whole number" if whole else "a number"
        return f"{noun}{examples.get(self.family, '')} from {self.low:g} to {self.high:g}"

    def _amount(self, value: object) -> float | None:
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            return value
        written = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
        unit = _UNITS[self.family].get(written[2]) if written else None
        # 1e-9: 5 % of a written 5 must be 0.05, not 0.05 and a last bit.
        return round(float(written[1]) * unit, 9) if written and unit is not None else None


Seconds = Annotated[float, Number("duration", 0, 86_400)]
Share = Annotated[float, Number("share", 0, 1)]
Rate = Annotated[float, Number("number", 0.001, 1e9)]
Amount = Annotated[float, Number("number", 0, 1e9)]
Count = Annotated[int, Number("number", 0, 10_000_000)]
Positive = Annotated[int, Number("number", 1, 10_000_000)]
Size = Annotated[int, Number("size", 0, 100_000_000)]
Port = Annotated[int, Number("number", 0, 65_535)]
HttpStatus = Annotated[int, Number("number", 200, 599)]
