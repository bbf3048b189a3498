"""What the state folder missed, in the exposition."""

from gateway.telemetry.metrics import Metrics
from tests.telemetry.catalogs import catalog


def _line(metrics: Metrics) -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if line.startswith("gateway_state_dropped_total")]


def test_it_is_asked_for_at_each_scrape_and_0_where_state_is_in_memory() -> None:
    metrics = Metrics(catalog())
    assert _line(metrics) == ["gateway_state_dropped_total 0"]
    dropped = [3, 5]
    metrics.watch_state_dropped(lambda: dropped.pop(0))
    assert _line(metrics) == ["gateway_state_dropped_total 3"]
    assert _line(metrics) == ["gateway_state_dropped_total 5"]
