"""GET /v1/models/{id}/endpoints: OpenRouter's shape, the direction of its percentiles, and names with slashes."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from gateway.api.endpoints import latency, throughput, usd_per_token
from gateway.core.speed import Quantiles
from gateway.core.types import Price, Quirks
from tests.api.callers import ALICE, BOB, bearer, ring
from tests.api.fleets import CLOUD, HOUSE, answered, catalog, deployment, failed, route, serving
from tests.live import fast, live, run

# The fields of OpenRouter's `PublicEndpoint` that its own clients read.
FIELDS = {"name", "model_id", "model_name", "context_length", "pricing", "provider_name", "tag", "quantization"}
FIELDS |= {"max_completion_tokens", "max_prompt_tokens", "supported_parameters", "supports_implicit_caching", "status"}
FIELDS |= {"uptime_last_5m", "uptime_last_30m", "uptime_last_1d", "latency_last_30m", "throughput_last_30m"}

PLAIN = deployment(HOUSE, "org/deep")
PRICED = deployment(
    CLOUD,
    "org/deep",
    price=Price(2.0, 0.5, 8.25),
    context=262144,
    max_output=32768,
    features=frozenset({"tools", "json_schema", "vision"}),
)
LAST = deployment(CLOUD, "x/endpoints")
FLEET = catalog([PLAIN, PRICED, LAST], route("all", PLAIN, PRICED, LAST, description="everything"))


async def listed(client: httpx.AsyncClient, path: str = "/v1/models/org/deep/endpoints") -> Any:
    response = await client.get(path)
    assert response.status_code == 200
    return response.json()["data"]


def test_what_is_not_known_is_null_and_never_invented() -> None:
    async def main() -> None:
        async with serving(FLEET) as (_, client):
            shown = await listed(client)
            assert set(shown) == {"id", "name", "created", "description", "architecture", "endpoints"}
            assert (shown["id"], shown["name"]) == ("org/deep", "org/deep")
            entry = shown["endpoints"][0]
            assert set(entry) == FIELDS | {"state"}
            told = {name: value for name, value in entry.items() if value is not None}
            assert told == {
                "name": "house | org/deep",
                "model_id": "org/deep",
                "model_name": "org/deep",
                "pricing": {"prompt": None, "completion": None, "input_cache_read": None},
                "provider_name": "house",
                "tag": "house/org/deep",
                "status": 0,
                "state": "unmeasured",
            }

    run(main())


def test_what_is_configured_is_told() -> None:
    async def main() -> None:
        async with serving(FLEET) as (_, client):
            entry = (await listed(client))["endpoints"][1]
            assert entry["pricing"] == {
                "prompt": "0.000002",
                "completion": "0.00000825",
                "input_cache_read": "0.0000005",
            }
            assert (entry["context_length"], entry["max_completion_tokens"]) == (262144, 32768)
            assert entry["supported_parameters"] == ["tools", "tool_choice", "response_format", "structured_outputs"]
            shown = await listed(client, "/v1/models/all/endpoints")
            assert shown["description"] == "everything"
            assert [endpoint["tag"] for endpoint in shown["endpoints"]] == [PLAIN.id, PRICED.id, LAST.id]

    run(main())


@pytest.mark.parametrize(
    ("features", "inputs"),
    [
        ([None, frozenset({"vision"})], None),
        ([frozenset({"vision"}), frozenset({"vision", "tools"})], ["text", "image"]),
        ([frozenset({"vision"}), frozenset()], ["text"]),
    ],
)
def test_images_are_taken_where_every_deployment_is_declared_to_take_them(features: Any, inputs: Any) -> None:
    async def main() -> None:
        served = [deployment(place, "m", features=has) for place, has in zip((HOUSE, CLOUD), features, strict=True)]
        async with serving(catalog(served)) as (_, client):
            shown = await listed(client, "/v1/models/m/endpoints")
            assert shown["architecture"]["input_modalities"] == inputs

    run(main())


def test_a_parameter_that_is_removed_before_sending_is_not_supported() -> None:
    async def main() -> None:
        strict = replace(HOUSE, quirks=Quirks(refuses=frozenset({"tool_choice"})))
        async with serving(catalog([deployment(strict, "m", features=frozenset({"tools"}))])) as (_, client):
            assert (await listed(client, "/v1/models/m/endpoints"))["endpoints"][0]["supported_parameters"] == ["tools"]

    run(main())


def test_throughput_is_the_lower_tail_and_latency_the_upper() -> None:
    """p90 of a speed is what 90 % of requests reach: 100 requests at 1, 2, … 100 tok/s reach 50, 25, 10, 1."""

    async def main() -> None:
        async with serving(FLEET) as (gateway, client):
            for tps in range(1, 101):
                gateway.book.record(answered(PRICED, tps=float(tps), ttft_ms=10.0 * tps))
            entry = (await listed(client))["endpoints"][1]
            speed, wait = entry["throughput_last_30m"], entry["latency_last_30m"]
            assert list(speed) == list(wait) == ["p50", "p75", "p90", "p99"]
            assert list(speed.values()) == pytest.approx([50, 25, 10, 1], rel=0.021, abs=0.06)
            # Milliseconds.
            assert list(wait.values()) == pytest.approx([500, 750, 900, 990], rel=0.021)
            assert speed["p99"] < speed["p90"] < speed["p75"] < speed["p50"]
            assert wait["p50"] < wait["p75"] < wait["p90"] < wait["p99"]

    run(main())


def test_percentiles_agree_with_those_of_the_speed_report() -> None:
    sample = Quantiles(count=9, p1=1.0, p10=10.0, p25=25.0, p50=50.0, p75=75.0, p90=90.0, p99=99.0)
    assert throughput(sample) == {"p50": 50.0, "p75": 25.0, "p90": 10.0, "p99": 1.0}
    assert latency(sample) == {"p50": 50.0, "p75": 75.0, "p90": 90.0, "p99": 99.0}
    assert throughput(Quantiles()) is latency(Quantiles()) is None


@pytest.mark.parametrize(("good", "uptime"), [(8, None), (9, 90.0), (39, 97.5)])
def test_uptime_is_in_per_cent_and_needs_ten_requests(good: int, uptime: float | None) -> None:
    async def main() -> None:
        async with serving(FLEET) as (gateway, client):
            gateway.book.record(failed(PLAIN))
            for _ in range(good):
                gateway.book.record(answered(PLAIN))
            entry = (await listed(client))["endpoints"][0]
            assert {entry[f"uptime_last_{window}"] for window in ("5m", "30m", "1d")} == {uptime}

    run(main())


@pytest.mark.parametrize(
    ("state", "status"),
    [("ok", 0), ("unmeasured", 0), ("disabled", None)],
)
def test_status_is_zero_in_service_and_unknown_otherwise(state: str, status: int | None) -> None:
    async def main() -> None:
        async with live(fast(tps=500, output_tokens=50)) as gw:
            if state == "ok":
                for _ in range(20):
                    await gw.record(await gw.post())
            if state == "disabled":
                gw.gateway.health.disable("p0/m")
            entry = (await gw.client.get("/v1/models/m/endpoints")).json()["data"]["endpoints"][0]
            assert (entry["state"], entry["status"]) == (state, status)

    run(main())


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1/models/org/deep", ("model", "org/deep")),
        ("/v1/models/org%2Fdeep", ("model", "org/deep")),
        ("/v1/models/org/deep/endpoints", ("endpoints", "org/deep")),
        ("/v1/models/org%2Fdeep/endpoints", ("endpoints", "org/deep")),
        ("/v1/models/org%2fdeep/endpoints?limit=5", ("endpoints", "org/deep")),
        # A name that ends so itself: its slash is sent as %2F.
        ("/v1/models/x%2Fendpoints", ("model", "x/endpoints")),
        ("/v1/models/x%2Fendpoints/endpoints", ("endpoints", "x/endpoints")),
        ("/v1/models/x/endpoints/endpoints", ("endpoints", "x/endpoints")),
        ("/v1/models/x/endpoints", (404, "'x'")),
        ("/v1/models/endpoints", (404, "'endpoints'")),
        ("/v1/models/endpoints/endpoints", (404, "'endpoints'")),
        ("/v1/models//endpoints", (404, "'/endpoints'")),
        ("/v1/models/org/deep/endpoints/", (404, "'org/deep/endpoints/'")),
        ("/v1/models/nobody/endpoints", (404, "'nobody'")),
    ],
)
def test_a_name_may_hold_slashes(path: str, found: tuple[Any, str]) -> None:
    async def main() -> None:
        async with serving(FLEET) as (_, client):
            response = await client.get(path)
            kind, name = found
            if kind == 404:
                assert response.status_code == 404
                assert name in response.json()["error"]["message"]
            elif kind == "model":
                assert (response.json()["object"], response.json()["id"]) == ("model", name)
            else:
                assert response.json()["data"]["id"] == name

    run(main())


def test_a_key_asks_for_the_models_it_may_use() -> None:
    async def main() -> None:
        async with live(fast(), keys=ring()) as gw:
            for key, path, status in (
                (ALICE, "m", 200),
                (ALICE, "only-p0", 403),
                (BOB, "only-p0", 200),
                (BOB, "nobody", 404),
            ):
                response = await gw.client.get(f"/v1/models/{path}/endpoints", headers=bearer(key))
                assert response.status_code == status
            assert (await gw.client.get("/v1/models/m/endpoints")).status_code == 401
            assert (await gw.client.head("/v1/models/m/endpoints", headers=bearer(ALICE))).status_code == 200
            assert (await gw.client.post("/v1/models/m/endpoints", headers=bearer(ALICE))).status_code == 405

    run(main())


def test_names_of_an_open_provider_have_an_endpoint_each() -> None:
    async def main() -> None:
        async with live(fast(), open_providers=("p0",)) as gw:
            (entry,) = (await gw.client.get("/v1/models/p0/org/new/endpoints")).json()["data"]["endpoints"]
            assert (entry["tag"], entry["state"], entry["throughput_last_30m"]) == ("p0/org/new", "unmeasured", None)

    run(main())


@pytest.mark.parametrize(
    ("per_million", "text"),
    [
        (None, None),
        (0.0, "0"),
        (2.0, "0.000002"),
        (0.1, "0.0000001"),
        (15, "0.000015"),
        (8.25, "0.00000825"),
        (1e-5, "0.00000000001"),
        (1_000_000.0, "1"),
        (20_000_000.0, "20"),
    ],
)
def test_prices_are_plain_decimals_of_dollars_a_token(per_million: float | None, text: str | None) -> None:
    assert usd_per_token(per_million) == text
