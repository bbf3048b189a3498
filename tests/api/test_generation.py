"""GET /v1/generation: complete as documented, for every kind of outcome."""

from typing import Any

import httpx
import pytest

from gateway.core.types import Price
from gateway.simulator.faults import Cut, Status
from tests.api.documented import differences, documented, further
from tests.live import Live, fast, live, run

# What the attempts tell beyond the interface: which of several providers, and the waits before its t0.
FURTHER = {".attempts[].provider", ".attempts[].model", ".attempts[].pool_wait_ms", ".attempts[].connect_ms"}


async def shown(gw: Live, response: httpx.Response) -> Any:
    found = await gw.client.get("/v1/generation", params={"id": (await gw.record(response)).id})
    assert found.status_code == 200
    assert found.headers["cache-control"] == "no-store"
    return found.json()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("faults", [(), (Status(code=503),), (Cut(after_tokens=5),)], ids=["ok", "refused", "cut"])
def test_a_record_has_every_documented_field_with_its_type(stream: bool, faults: tuple[Any, ...]) -> None:
    async def main() -> None:
        deployment = {"price": Price(2.0, 0.5, 8.0)}
        async with live(fast(faults=faults), fast(), deployment=deployment) as gw:
            record = await shown(gw, await gw.post(stream=stream))
            assert list(differences(record, documented("generation"))) == []
            assert further(record, documented("generation")) == FURTHER

    run(main())


def test_what_a_good_stream_tells_is_not_null() -> None:
    """The key tree alone would also fit a record of nulls."""
    unknown = {"client_request_id", "key", "task", "session", "route", "served_tier", "tier", "measured_tier"}
    unknown |= {"promise", "error", "server_clock", "feedback"}

    async def main() -> None:
        async with live(fast(), deployment={"price": Price(2.0, 0.5, 8.0)}) as gw:
            record = await shown(gw, await gw.post())
            assert {name for name, value in record.items() if value is None} <= unknown
            assert {name for name, value in record["timing"].items() if value is None} <= {"connect_ms"}
            assert {name for name, value in record["tokens"].items() if value is None} <= {"cache_write", "reasoning"}
            assert record["cost_usd"] > 0

    run(main())


def test_a_refused_request_has_the_same_fields() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            record = await shown(gw, await gw.client.post("/v1/chat/completions", json={"model": "nobody"}))
            assert list(differences(record, documented("generation"))) == []
            assert further(record, documented("generation")) == set()
            assert record["attempts"] == []

    run(main())


def test_head_tells_whether_there_is_one() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            made = await gw.post()
            record = await gw.record(made)
            there = await gw.client.head("/v1/generation", params={"id": record.id})
            missing = await gw.client.head("/v1/generation", params={"id": "gen-0"})
            assert (there.status_code, there.content, missing.status_code) == (200, b"", 404)

    run(main())
