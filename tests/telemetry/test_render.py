"""The text format, held against prometheus-client's parser."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.definitions import Definition
from gateway.telemetry.registry import Registry
from gateway.telemetry.render import number

_COUNTER = Definition("t_total", "counter", ("a", "b"), "Back\\slash and\nline end.")
_HISTOGRAM = Definition("h_seconds", "histogram", ("a",), "H.", (0.1, 1, 2.5))


def _text(registry: Registry) -> str:
    return "".join(registry.slices())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0"), (3.0, "3"), (-2.0, "-2"), (0.25, "0.25"), (1e-9, "1e-09"), (2.0**60, "1.152921504606847e+18")),
        *((math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")),
    ],
)
def test_numbers_are_written_as_prometheus_reads_them(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(allow_nan=False))
def test_every_number_is_read_back_as_it_was(value: float) -> None:
    assert float(number(value)) == value


# A carriage return and its kin are line ends to the parser's splitlines, not to the format.
_LABEL = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], include_characters='\\"\n'))


@given(first=_LABEL, second=_LABEL, value=st.integers(0, 10**12))
def test_any_label_value_is_read_back_as_it_was(first: str, second: str, value: int) -> None:
    registry = Registry([_COUNTER])
    registry.scalar("t_total").child(first, second).inc(value)
    (family,) = text_string_to_metric_families(_text(registry))
    (sample,) = family.samples
    assert (sample.name, sample.labels, sample.value) == ("t_total", {"a": first, "b": second}, value)
    assert family.documentation == "Back\\slash and\nline end."


@given(st.lists(st.floats(0, 5) | st.sampled_from((0.1, 1.0, 2.5))), st.integers(0, 3))
def test_a_histogram_is_read_back_with_cumulative_buckets(values: list[float], alone: int) -> None:
    registry = Registry([_HISTOGRAM])
    child = registry.histogram("h_seconds").child("x")
    for value in values[:alone]:
        child.observe(value)
    child.observe_all(values[alone:])
    (family,) = text_string_to_metric_families(_text(registry))
    assert family.type == "histogram"
    read = {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples}
    for bound in (0.1, 1.0, 2.5):
        assert read["h_seconds_bucket", str(bound)] == sum(value <= bound for value in values)
    assert read["h_seconds_bucket", "+Inf"] == read["h_seconds_count", None] == len(values)
    assert read["h_seconds_sum", None] == pytest.approx(sum(values))


def test_a_metric_without_labels_has_no_braces() -> None:
    registry = Registry(
        [Definition("g", "gauge", (), "G."), Definition("h", "histogram", (), "H.", (1,))],
    )
    registry.scalar("g").child().set(2)
    registry.histogram("h").child().observe(0.5)
    lines = _text(registry).splitlines()
    assert "g 2" in lines
    assert 'h_bucket{le="1.0"} 1' in lines
    assert "h_count 1" in lines


def test_the_text_follows_every_change() -> None:
    registry = Registry([_COUNTER, _HISTOGRAM])
    counter, histogram = registry.scalar("t_total").child("1", "2"), registry.histogram("h_seconds").child("x")
    assert 't_total{a="1",b="2"} 0\n' in _text(registry)
    for step in (1, 2, 3):
        counter.inc()
        histogram.observe(1.0)
        text = _text(registry)
        assert f't_total{{a="1",b="2"}} {step}\n' in text
        assert f'h_seconds_count{{a="x"}} {step}\n' in text
        assert f'h_seconds_sum{{a="x"}} {step}\n' in text


def test_a_series_found_under_its_first_labels_is_the_one_found_by_all() -> None:
    registry = Registry([_COUNTER])
    family = registry.scalar("t_total")
    by_second = family.under("1")
    by_second["2",].inc()
    assert family.child("1", "2") is by_second["2",]
    assert family.under()["1", "2"] is by_second["2",]
    assert _text(registry).count("t_total{") == 1


def test_a_value_on_a_bound_counts_below_it() -> None:
    registry = Registry([_HISTOGRAM])
    registry.histogram("h_seconds").child("x").observe(0.1)
    assert 'h_seconds_bucket{a="x",le="0.1"} 1\n' in _text(registry)


def test_slices_end_as_often_as_asked_and_join_to_the_whole() -> None:
    registry = Registry([_COUNTER])
    for index in range(100):
        registry.scalar("t_total").child(str(index), "").inc(index)
    pieces = list(registry.slices(slice_s=0.0))
    assert len(pieces) > 5
    assert "".join(pieces) == _text(registry)


def test_a_series_may_appear_between_two_slices() -> None:
    registry = Registry([_COUNTER])
    family = registry.scalar("t_total")
    for index in range(50):
        family.child(str(index), "")
    for count, _ in enumerate(registry.slices(slice_s=0.0)):
        family.child("late", str(count))
    assert 't_total{a="late",b="0"} 0\n' in _text(registry)


def test_wrong_labels_and_double_names_are_faults() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Registry([_COUNTER]).scalar("t_total").child("only one")
    with pytest.raises(ValueError, match="twice"):
        Registry([_COUNTER, _COUNTER])
