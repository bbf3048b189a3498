"""Durations, sizes and shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.units import duration_s, share, size_bytes

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_BYTES = {"TB": 10**12, "TiB": 2**40, "GB": 10**9, "GiB": 2**30, "MB": 10**6, "MiB": 2**20, "KB": 10**3, "KiB": 2**10}


def duration_text(seconds: float) -> str:
    """As a person would write it: `90s` is `90s`, `120s` is `2m`."""
    for unit, size in _SECONDS.items():
        count = seconds / size
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{seconds * 1000:.6f}ms" if seconds < 1 else f"{seconds:.6f}s"


def size_text(size: int) -> str:
    """In the largest unit that is exact."""
    return next((f"{size // unit}{name}" for name, unit in _BYTES.items() if size % unit == 0), f"{size}B")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("500ms", 0.5),
        ("5s", 5.0),
        ("10m", 600.0),
        ("24h", 86400.0),
        ("7d", 604800.0),
        ("1.5s", 1.5),
        (3, 3.0),
        (0.25, 0.25),
        (0, 0.0),
        ("0s", 0.0),
        ("5 s", 5.0),
    ],
)
def test_a_duration_is_read_in_its_unit(written: object, seconds: float) -> None:
    assert duration_s(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    [
        "-5s",
        -1,
        "5",
        "s",
        "5 minutes",
        "1h30m",
        "",
        True,
        None,
        float("inf"),
        float("nan"),
        "٣s",
        "9" * 15 + "d",
        10**400,
        "1e3s",
        [],
        {},
    ],
)
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        duration_s(written)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("32MB", 32_000_000),
        ("1GB", 10**9),
        ("64KB", 64_000),
        ("1MiB", 1_048_576),
        ("512B", 512),
        (1024, 1024),
        ("1.5MB", 1_500_000),
    ],
)
def test_a_size_is_read_in_its_unit(written: object, size: int) -> None:
    assert size_bytes(written) == size


@pytest.mark.parametrize("written", ["32", "32mb", "-1MB", 0, -1, "0MB", True, float("inf"), "MB", None, "1PB"])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be a size"):
        size_bytes(written)


@pytest.mark.parametrize(
    ("written", "part"), [("5%", 0.05), (0.05, 0.05), ("100%", 1.0), (1, 1.0), (0, 0.0), ("2.5 %", 0.025)]
)
def test_a_share_is_read_as_percent_or_fraction(written: object, part: float) -> None:
    assert share(written) == pytest.approx(part)


@pytest.mark.parametrize("written", ["5", "101%", 5, -0.1, "-5%", True, float("nan"), "%", None, "half"])
def test_what_is_no_share_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be a share"):
        share(written)


@given(st.floats(min_value=0, max_value=3650 * 86400, allow_nan=False).map(lambda value: round(value, 3)))
def test_a_duration_survives_being_written_and_read(seconds: float) -> None:
    assert duration_s(duration_text(seconds)) == pytest.approx(seconds, abs=1e-6)


@given(st.integers(min_value=1, max_value=2**50))
def test_a_size_survives_being_written_and_read(size: int) -> None:
    assert size_bytes(size_text(size)) == size


@given(st.integers(min_value=0, max_value=100_000).map(lambda value: value / 100_000))
def test_a_share_survives_being_written_and_read(part: float) -> None:
    assert share(f"{part * 100:.12g}%") == pytest.approx(part, abs=1e-12)
