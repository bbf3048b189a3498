"""Quantiles from counts in logarithmic buckets: at most 2 % off; counts of several places or times merge by adding."""

from collections.abc import Iterable, Mapping
from math import ceil, exp, log

_ERROR = 0.02
_GAMMA = log((1 + _ERROR) / (1 - _ERROR))
# The value inside a bucket that is off by the same share at both of its ends.
_MIDDLE = log(2 / (1 + exp(_GAMMA)))
# Beyond these no measurement lies; a bucket number stays small.
_LEAST, _LARGEST = 1e-6, 1e12
# Differences of floats must not decide a rank.
_STEP = 1e-12

Counts = dict[int, int]


def bucket_of(value: float) -> int | None:
    """The bucket of a value; None for values that are not above 0, which have no logarithm."""
    if not value > 0:
        return None
    return ceil(log(min(max(value, _LEAST), _LARGEST)) / _GAMMA)


def value_of(bucket: int) -> float:
    """What stands for all values of a bucket."""
    return exp(bucket * _GAMMA + _MIDDLE)


def merge(into: Counts, counts: Mapping[int, int]) -> None:
    """Adds counts to others."""
    for bucket, count in counts.items():
        into[bucket] = into.get(bucket, 0) + count


def quantiles(
    counts: Mapping[int, int], shares: Iterable[float], bounds: Mapping[int, int] | None = None
) -> list[float | None]:
    """The values below which these shares (ascending) of the samples lie; None for each where there is no sample.

    `bounds` counts samples of which only a lower bound is known. They are taken as what they are (Kaplan and Meier,
    1958): each stays among the undecided until its bound, and its share goes to the values that are larger. Where so
    many bounds lie at the top that a quantile is not decided, the largest value or bound stands for it: at least that.
    """
    wanted = list(shares)
    if bounds:
        return _survived(counts, wanted, bounds)
    total = sum(counts.values())
    if not total:
        return [None] * len(wanted)
    found: list[float | None] = []
    seen = 0
    ordered = iter(sorted(counts.items()))
    bucket = 0
    for share in wanted:
        rank = max(1, ceil(share * total - _STEP))
        while seen < rank:
            bucket, count = next(ordered)
            seen += count
        found.append(value_of(bucket))
    return found


def _survived(counts: Mapping[int, int], wanted: list[float], bounds: Mapping[int, int]) -> list[float | None]:
    at_risk = sum(counts.values()) + sum(bounds.values())
    ordered = sorted({*counts, *bounds})
    found: list[float | None] = []
    surviving = 1.0
    for bucket in ordered:
        events = counts.get(bucket, 0)
        if events:
            surviving *= 1 - events / at_risk
            while len(found) < len(wanted) and surviving <= 1 - wanted[len(found)] + _STEP:
                found.append(value_of(bucket))
        at_risk -= events + bounds.get(bucket, 0)
    return found + [value_of(ordered[-1])] * (len(wanted) - len(found))
