"""GET /v1/speed: the documented shape, figures that agree with the records, filters, and who sees what."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.core.speed import WINDOWS
from gateway.core.types import BreakerPolicy, Price
from gateway.limits.keys import KeyEntry, KeyRing
from gateway.simulator.faults import Silence, Status
from tests.api.callers import ADMIN, ALICE, BOB, bearer, ring, sha
from tests.api.documented import differences, documented, further
from tests.api.fleets import CLOUD, HOUSE, answered, catalog, deployment, failed, route, serving
from tests.live import fast, live, run

FAST, SLOW, DEEP = deployment(HOUSE, "fast-1"), deployment(CLOUD, "slow-1"), deployment(CLOUD, "org/deep")
FLEET = catalog([FAST, SLOW, DEEP], route("quick", FAST, fallback=("batch",)), route("batch", SLOW))
FURTHER = {
    *(".deployments[]." + name for name in ("max_output", "effective_samples", "chars_per_token", "estimate_ratio")),
    ".deployments[].mean_in_flight",
    *(".deployments[]." + name for name in ("clock_decode_ratio", "clock_ttft_difference_ms")),
}


def ids(shown: Any) -> list[str]:
    return [entry["id"] for entry in shown["deployments"]]


def test_the_answer_has_every_documented_field_with_its_type() -> None:
    async def main() -> None:
        known = {"price": Price(2.0, 0.5, 8.0), "context": 262144}
        async with live(fast(), deployment=known) as gw:
            await gw.record(await gw.post())
            response = await gw.client.get("/v1/speed")
            shown = response.json()
            assert (response.headers["content-type"], response.headers["cache-control"]) == (
                "application/json",
                "no-store",
            )
            assert response.headers["x-request-id"].startswith("gen-")
            assert list(differences(shown, documented("speed"))) == []
            beside = {name for name in further(shown, documented("speed")) if ".windows." not in name}
            assert beside == FURTHER
            (entry,) = shown["deployments"]
            assert list(entry["windows"]) == list(WINDOWS)
            assert all(set(window) == set(entry["windows"]["5m"]) for window in entry["windows"].values())
            assert (entry["sold_tier"], entry["measured_tier"]) == (None, None)
            assert (entry["price"], entry["context"]) == ({"input": 2.0, "cached_input": 0.5, "output": 8.0}, 262144)

    run(main())


def within(ms: float | None) -> object:
    """Two percent, and what rounding to a tenth adds."""
    assert ms is not None
    return pytest.approx(ms, abs=0.021 * ms + 0.06)


def test_the_figures_are_those_of_the_record() -> None:
    async def main() -> None:
        async with live(fast(tps=200, output_tokens=60), deployment={"price": Price(2.0, 0.5, 8.0)}) as gw:
            record = await gw.record(await gw.post())
            (entry,) = (await gw.client.get("/v1/speed")).json()["deployments"]
            for window in entry["windows"].values():
                assert (window["requests"], window["samples"], window["qualities"]) == (1, 1, {"ok": 1})
                assert window["output_tps"]["p50"] == pytest.approx(record.speed.output_tps, rel=0.021)
                assert window["chars_per_s"]["p50"] == pytest.approx(record.speed.chars_per_s, rel=0.021)
                assert window["ttft_ms"]["p50"] == within(record.timing.ttft_ms)
                assert window["ttfa_ms"]["p50"] == within(record.timing.ttfa_ms)
                assert window["max_gap_ms"]["p50"] == within(record.timing.max_gap_ms)
                assert window["cost_usd"] == pytest.approx(record.cost_usd, abs=1e-9)
                assert window["uptime"] is None  # one request proves nothing

    run(main())


def test_percentiles_are_of_the_sample_and_the_floor_is_the_tenth() -> None:
    async def main() -> None:
        async with serving(FLEET) as (gateway, client):
            for tps in range(1, 101):
                gateway.book.record(answered(FAST, tps=float(tps), ttft_ms=10.0 * tps))
            shown = (await client.get("/v1/speed", params={"deployment": FAST.id, "window": "5m"})).json()
            window = shown["deployments"][0]["windows"]["5m"]
            speeds = window["output_tps"]
            assert [speeds[name] for name in ("p10", "p50", "p75", "p90", "p99")] == pytest.approx(
                [10, 50, 75, 90, 99], rel=0.021
            )
            assert speeds["floor"] == speeds["p10"]
            assert window["consistency"] == pytest.approx(speeds["p10"] / speeds["p50"], rel=0.01)
            assert window["ttft_ms"]["p99"] == pytest.approx(990, rel=0.021)
            assert (window["samples"], speeds["count"], window["uptime"]) == (100, 100, 1.0)
            (load,) = shown["deployments"][0]["load"]
            assert (load["in_flight"], load["samples"]) == ("1", 100)
            assert load["output_tps"] == pytest.approx(50, rel=0.021)

    run(main())


@pytest.mark.parametrize(
    ("query", "found", "windows"),
    [
        ("", [FAST.id, SLOW.id, DEEP.id], list(WINDOWS)),
        ("?model=fast-1", [FAST.id], list(WINDOWS)),
        ("?model=org/deep", [DEEP.id], list(WINDOWS)),
        ("?model=org%2Fdeep", [DEEP.id], list(WINDOWS)),
        ("?model=quick", [FAST.id], list(WINDOWS)),
        ("?model=quick&model=batch", [FAST.id, SLOW.id], list(WINDOWS)),
        ("?provider=cloud", [SLOW.id, DEEP.id], list(WINDOWS)),
        ("?provider=cloud&model=quick", [], list(WINDOWS)),
        ("?deployment=cloud/slow-1&window=1h", [SLOW.id], ["1h"]),
        ("?window=7d&window=5m", [FAST.id, SLOW.id, DEEP.id], ["5m", "7d"]),
        ("?window=&limit=5&_=1", [FAST.id, SLOW.id, DEEP.id], list(WINDOWS)),
    ],
)
def test_filters_narrow_it_down(query: str, found: list[str], windows: list[str]) -> None:
    async def main() -> None:
        async with serving(FLEET) as (_, client):
            shown = (await client.get(f"/v1/speed{query}")).json()
            assert ids(shown) == found
            assert all(list(entry["windows"]) == windows for entry in shown["deployments"])
            assert set(shown) == {"generated", "deployments"}

    run(main())


@pytest.mark.parametrize(
    ("query", "status", "param", "says"),
    [
        ("window=30m", 400, "window", "5m, 1h, 24h, 7d"),
        ("window=5m&window=x", 400, "window", "5m, 1h, 24h, 7d"),
        ("model=nobody", 404, "model", "fast-1"),
        ("provider=nobody", 404, "provider", "house, cloud"),
        ("deployment=nobody", 404, "deployment", "house/fast-1"),
        ("deployment=" + "n" * 5000, 404, "deployment", "house/fast-1"),
    ],
)
def test_what_is_not_there_is_refused_naming_what_is(query: str, status: int, param: str, says: str) -> None:
    async def main() -> None:
        async with serving(FLEET) as (_, client):
            response = await client.get(f"/v1/speed?{query}")
            error = response.json()["error"]
            assert (response.status_code, error["param"]) == (status, param)
            assert says in error["message"]
            assert len(error["message"]) < 500

    run(main())


def test_a_key_sees_what_its_names_can_reach() -> None:
    async def main() -> None:
        keys = [KeyEntry("alice", sha(ALICE), frozenset({"quick"})), KeyEntry("bob", sha(BOB), None)]
        async with serving(FLEET, keys=KeyRing(keys, [sha(ADMIN)])) as (_, client):
            # alice's route falls back to another, whose deployments answer her then.
            for key, found in (
                (ALICE, [FAST.id, SLOW.id]),
                (BOB, [FAST.id, SLOW.id, DEEP.id]),
                (ADMIN, [FAST.id, SLOW.id, DEEP.id]),
            ):
                assert ids((await client.get("/v1/speed", headers=bearer(key))).json()) == found
            unseen = await client.get("/v1/speed?deployment=cloud/org/deep", headers=bearer(ALICE))
            assert unseen.status_code == 404
            assert DEEP.id not in unseen.json()["error"]["message"].partition("known:")[2]
            assert (await client.get("/v1/speed?model=org/deep", headers=bearer(ALICE))).status_code == 403
            assert (await client.get("/v1/speed")).status_code == 401

    run(main())


def test_a_key_that_may_use_one_model_sees_no_other() -> None:
    async def main() -> None:
        async with live(fast(), fast(), keys=ring(), twice=True) as gw:
            assert len(ids((await gw.client.get("/v1/speed", headers=bearer(ALICE))).json())) == 4
            assert len(ids((await gw.client.get("/v1/speed?model=m", headers=bearer(ALICE))).json())) == 4
            assert (await gw.client.get("/v1/speed?model=only-p0", headers=bearer(ALICE))).status_code == 403

    run(main())


def test_what_an_open_provider_was_asked_for_is_shown_and_what_was_only_looked_up_is_not() -> None:
    async def main() -> None:
        async with live(fast(), open_providers=("p0",)) as gw:
            for path in ("/v1/models/p0/b", "/v1/models/p0/b/endpoints", "/v1/speed?model=p0/b"):
                assert (await gw.client.get(path)).status_code == 200
            assert ids((await gw.client.get("/v1/speed")).json()) == ["p0/m"]
            await gw.record(await gw.post(model="p0/a"))
            shown = (await gw.client.get("/v1/speed")).json()
            assert ids(shown) == ["p0/m", "p0/a"]
            made = shown["deployments"][1]
            assert (made["model"], made["provider"], made["windows"]["5m"]["requests"]) == ("p0/a", "p0", 1)
            # Attempts of such names are counted by their provider only.
            assert made["in_flight"] is None

    run(main())


def test_head_is_answered_without_a_body() -> None:
    async def main() -> None:
        async with serving(FLEET) as (_, client):
            head = await client.head("/v1/speed")
            assert (head.status_code, head.content) == (200, b"")
            assert int(head.headers["content-length"]) > 100
            assert (await client.post("/v1/speed", json={})).status_code == 405

    run(main())


def test_a_cooling_deployment_says_why_and_until_when() -> None:
    async def main() -> None:
        policy = BreakerPolicy(failures=2, cooldown_s=60.0, max_cooldown_s=60.0)
        async with live(fast(faults=(Status(code=500),)), fast(), breaker=policy) as gw:
            before = datetime.now(UTC)
            for _ in range(2):
                await gw.record(await gw.post())
            shown = (await gw.client.get("/v1/speed?provider=p0")).json()
            (entry,) = shown["deployments"]
            assert (entry["state"], entry["reason"]) == ("cooling", "server_error")
            left = datetime.fromisoformat(entry["until"]) - before
            assert 0 < left.total_seconds() <= 120
            assert entry["until"].endswith("Z")
            assert entry["windows"]["5m"]["errors"] == 2
            assert abs((datetime.fromisoformat(shown["generated"]) - before).total_seconds()) < 60

    run(main())


def test_the_state_and_the_attempts_under_way_are_those_of_the_answer() -> None:
    """The figures of a large fleet are kept for longer; a board that shows a dead provider as alive would be wrong."""

    async def main() -> None:
        async with live(fast(faults=(Silence(),))) as gw:
            before = (await gw.client.get("/v1/speed?window=5m")).json()["deployments"][0]
            waiting = asyncio.create_task(gw.post())
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            gw.gateway.health.disable("p0/m")
            during = (await gw.client.get("/v1/speed?window=1h")).json()["deployments"][0]
            assert [entry["in_flight"] for entry in (before, during)] == [0, 1]
            assert [entry["state"] for entry in (before, during)] == ["unmeasured", "disabled"]
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    run(main())


def test_uptime_leaves_rate_limits_out_and_needs_ten_requests() -> None:
    async def main() -> None:
        async with serving(FLEET) as (gateway, client):
            for _ in range(9):
                gateway.book.record(answered(FAST))
            gateway.book.record(failed(FAST))
            (entry,) = (await client.get("/v1/speed?deployment=house/fast-1&window=24h")).json()["deployments"]
            window = entry["windows"]["24h"]
            assert (window["requests"], window["errors"], window["uptime"]) == (10, 1, 0.9)
            assert window["cost_usd"] == pytest.approx(9 * 0.25)

    run(main())
