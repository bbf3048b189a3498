"""Durations, sizes and shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.units import duration_s, duration_text, share, share_text, size_bytes, size_text


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
    assert share(share_text(part)) == pytest.approx(part, abs=1e-12)
