"""Quantiles over many streams of one deployment: histograms to a bucket, the speed book within 2 %."""

import pytest

from benchmarks.truth_check import SHARES, exact, histogram, histogram_agrees, total
from gateway.core.record import GenerationRecord
from gateway.core.speed import WINDOWS
from gateway.metering.book import SpeedBook
from gateway.simulator import Script, Ttft
from gateway.telemetry.metrics import Metrics
from tests.telemetry.catalogs import catalog
from tests.truth.streams import DEPLOYMENT, Provider, measured, record_of

STREAMS = 300
SCRIPT = Script(ttft=Ttft(median=0.2, sigma=0.6), tps=90, jitter=0.4, output_tokens=30, tokens_per_chunk=2)


def _records() -> list[GenerationRecord]:
    """Each with a speed and a first token of its own."""
    provider = Provider(SCRIPT)
    return [record_of(measured(provider.stream(sim={"tps": 20.0 + 3 * number})), number) for number in range(STREAMS)]


def test_histograms_agree_with_the_exact_quantiles_to_a_bucket() -> None:
    metrics, records = Metrics(catalog()), _records()
    for record in records:
        metrics.record(record)
    text = metrics.render().decode()
    speeds = [record.speed.output_tps for record in records if record.speed.output_tps is not None]
    ttfts = [record.timing.ttft_ms / 1000 for record in records if record.timing.ttft_ms is not None]
    assert len(ttfts) == STREAMS
    assert len(speeds) > 0.9 * STREAMS
    assert histogram_agrees(histogram(text, "gateway_ttft_seconds", DEPLOYMENT), ttfts, 1e-9)
    assert histogram_agrees(histogram(text, "gateway_output_tokens_per_second", DEPLOYMENT), speeds, 1e-9)
    assert total(histogram(text, "gateway_ttfa_seconds", DEPLOYMENT)) == STREAMS


class _Clock:
    """Some seconds from one stream to the next."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


def test_the_speed_books_window_agrees_with_the_exact_quantiles_within_two_percent() -> None:
    clock = _Clock()
    book, records = SpeedBook(clock), _records()
    for record in records:
        clock.now += 0.5
        book.record(record)
    window = book.window(DEPLOYMENT, WINDOWS["5m"], clock.now)
    speeds = [record.speed.output_tps for record in records if record.speed.output_tps is not None]
    ttfts = [record.timing.ttft_ms for record in records if record.timing.ttft_ms is not None]
    assert (window.samples, window.ttft_ms.count) == (len(speeds), STREAMS)
    for name, share in SHARES.items():
        assert getattr(window.output_tps, name) == pytest.approx(exact(speeds, share), rel=0.02)
        assert getattr(window.ttft_ms, name) == pytest.approx(exact(ttfts, share), rel=0.02)
