"""The text exposition format 0.0.4: names, labels and numbers as Prometheus reads them."""

import math
from collections.abc import Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def number(value: float) -> str:
    """A sample value. Whole numbers without a point, as counters mostly are."""
    if math.isfinite(value):
        whole = int(value)
        return str(whole) if whole == value and abs(whole) < 1 << 53 else repr(value)
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def label_value(text: str) -> str:
    """Escaped for between the quotes of a label."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def help_text(text: str) -> str:
    """Escaped for a HELP line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def family_head(name: str, kind: str, text: str) -> str:
    """The HELP and TYPE lines of a metric."""
    return f"# HELP {name} {help_text(text)}\n# TYPE {name} {kind}\n"


def _label_text(names: Sequence[str], values: Sequence[str]) -> str:
    return ",".join(f'{name}="{label_value(value)}"' for name, value in zip(names, values, strict=True))


def series_prefix(name: str, names: Sequence[str], values: Sequence[str]) -> str:
    """All of a line but its value. ValueError where names and values do not match."""
    labels = _label_text(names, values)
    return f"{name}{{{labels}}} " if labels else f"{name} "


def histogram_prefixes(
    name: str, names: Sequence[str], values: Sequence[str], bounds: Sequence[float]
) -> tuple[str, ...]:
    """The prefixes of a histogram's lines: one for each bound, `+Inf`, the sum, the count."""
    labels = _label_text(names, values)
    lead = f"{name}_bucket{{{labels}," if labels else f"{name}_bucket{{"
    edges = [*(repr(float(bound)) for bound in bounds), "+Inf"]
    return (
        *(f'{lead}le="{edge}"}} ' for edge in edges),
        series_prefix(f"{name}_sum", names, values),
        series_prefix(f"{name}_count", names, values),
    )
