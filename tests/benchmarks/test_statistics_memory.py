"""What a week of statistics holds: bounded, whatever the values."""

import gc
import tracemalloc

from benchmarks.statistics_memory import START_S, Standing, fill, wide_hour, wide_records
from gateway.metering.book import SpeedBook

# A fiftieth of this for each of a thousand deployments would be 200 MB.
DEPLOYMENTS = 5
LIMIT_BYTES = 1_000_000


def test_five_deployments_with_every_slot_filled_hold_less_than_a_megabyte() -> None:
    records = wide_records(1200)
    hour = wide_hour(records)
    clock = Standing()
    book = SpeedBook(clock, offset_s=START_S)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(DEPLOYMENTS):
            fill(book, clock, f"p/m{number}", hour, records[:300])
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    week = book.window("p/m0", 604_800, clock.now)
    assert week.requests > 150 * 1200
    assert len(week.ttft_ms_by_prompt) == 5
    assert held < LIMIT_BYTES
