"""Which headers an answer has, for every way it can come about."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.core.types import Timeouts
from gateway.simulator import Script
from gateway.simulator.faults import Cut, Empty, ErrorEvent, Silence, Status
from tests.api.callers import ALICE, bearer, ring
from tests.live import HELLO, fast, live, run

SERVED = {"x-gateway-provider", "x-gateway-model", "x-gateway-deployment", "x-gateway-reason"}
ROUTED = {*SERVED, "x-gateway-attempts"}
WHOLE = {*ROUTED, "x-gateway-overhead-ms"}

GOOD = fast()
DOWN = fast(faults=(Status(code=503),))
WRONG = fast(faults=(Status(code=400, message="no"),))


@dataclass(frozen=True)
class Way:
    """A request, what the providers do, and which of our headers the answer has."""

    status: int
    headers: set[str]
    scripts: tuple[Script, ...] = (GOOD,)
    body: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = True
    attempts: str | None = None
    provider: str = "p0"
    settings: Mapping[str, Any] = field(default_factory=dict)


WAYS = {
    "stream": Way(200, ROUTED, attempts="1"),
    "whole": Way(200, WHOLE, stream=False, attempts="1"),
    "stream after a fallback": Way(200, ROUTED, (DOWN, GOOD), attempts="2", provider="p1"),
    "whole after a fallback": Way(200, WHOLE, (DOWN, GOOD), stream=False, attempts="2", provider="p1"),
    "stream that breaks later": Way(200, ROUTED, (fast(tps=200, faults=(Cut(after_tokens=5),)),), attempts="1"),
    "stream with a late error": Way(200, ROUTED, (fast(tps=200, faults=(ErrorEvent(after_tokens=5),)),), attempts="1"),
    # Another provider is asked once each; the last quick failure is worth a second try at its place.
    "every attempt failed": Way(503, WHOLE, (DOWN, DOWN), attempts="3", provider="p1"),
    "every attempt failed, whole": Way(503, WHOLE, (DOWN, DOWN), stream=False, attempts="3", provider="p1"),
    "empty answers": Way(502, WHOLE, (fast(faults=(Empty(finish=False),)),), attempts="2"),
    "the caller's mistake": Way(400, WHOLE, (WRONG, GOOD), attempts="1"),
    "no deployment can": Way(
        400,
        {"x-gateway-attempts", "x-gateway-overhead-ms"},
        body={"tools": [{"type": "function", "function": {"name": "f"}}]},
        attempts="0",
        settings={"deployment": {"features": frozenset()}},
    ),
    # These are no routed answers: nothing was looked for.
    "unknown model": Way(404, set(), body={"model": "nobody"}),
    "no messages": Way(400, set(), body={"messages": []}),
    "no place": Way(503, set(), settings={"max_streams": 0}),
    "too large": Way(413, set(), settings={"max_body": 10}),
}


@pytest.mark.parametrize("name", WAYS)
def test_an_answer_has_the_headers_of_its_way(name: str) -> None:
    way = WAYS[name]

    async def main() -> None:
        async with live(*way.scripts, **way.settings) as gw:
            response = await gw.post(way.stream, **way.body)
            assert response.status_code == way.status
            ours = {header for header in response.headers if header.startswith("x-gateway-")}
            assert ours == way.headers
            assert response.headers["x-request-id"].startswith("gen-")
            assert response.headers.get_list("x-request-id") == [response.headers["x-request-id"]]
            assert response.headers.get("x-gateway-attempts") == way.attempts
            record = await gw.record(response)
            assert str(len(record.attempts)) == (way.attempts or "0")
            if way.headers >= SERVED:
                shown = {header: response.headers[header] for header in SERVED}
                assert shown == {
                    "x-gateway-provider": way.provider,
                    "x-gateway-model": "m",
                    "x-gateway-deployment": f"{way.provider}/m",
                    "x-gateway-reason": record.reason,
                }
            if "x-gateway-overhead-ms" in way.headers:
                assert 0 <= float(response.headers["x-gateway-overhead-ms"]) < 10_000

    run(main())


def test_the_head_of_a_keep_alive_has_the_id_alone_and_the_record_has_the_rest() -> None:
    async def main() -> None:
        async with live(fast(ttft=0.3), keepalive_after_s=0.05) as gw:
            response = await gw.post()
            assert response.text.startswith(": keep-alive\n\n")
            assert not [header for header in response.headers if header.startswith("x-gateway-")]
            record = await gw.record(response)
            assert (record.deployment, record.outcome) == ("p0/m", "ok")

    run(main())


def test_requests_that_a_stop_ends_have_their_id() -> None:
    async def main() -> None:
        async with live(fast(faults=(Silence(),)), timeouts=Timeouts(connect_s=2, ttft_s=30)) as gw:
            waiting = asyncio.create_task(gw.post())
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            gw.listening.force()
            response = await waiting
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
            assert response.headers["x-request-id"].startswith("gen-")

    run(main())


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/v1/models", {}, 401),
        ("GET", "/v1/models", bearer(ALICE), 200),
        ("GET", "/v1/speed", bearer(ALICE), 200),
        ("GET", "/v1/models/m/endpoints", bearer(ALICE), 200),
        ("GET", "/v1/generation?id=gen-0", bearer(ALICE), 404),
        ("GET", "/v1/nothing", bearer(ALICE), 404),
        ("PUT", "/v1/models", bearer(ALICE), 405),
        ("POST", "/v1/chat/completions", bearer(ALICE) | {"content-type": "text/plain"}, 415),
        ("GET", "/v1/models", bearer(ALICE) | {"host": "evil.example"}, 403),
        ("GET", "/healthz", {}, 200),
        ("GET", "/metrics", bearer(ALICE), 200),
    ],
)
def test_every_answer_has_an_id(method: str, path: str, headers: dict[str, str], status: int) -> None:
    async def main() -> None:
        async with live(fast(), keys=ring()) as gw:
            response = await gw.client.request(method, path, headers=headers)
            assert response.status_code == status
            assert response.headers["x-request-id"].startswith("gen-")

    run(main())


@pytest.mark.parametrize(
    ("theirs", "kept"),
    [
        ("abc-1", "abc-1"),
        ("x" * 128, "x" * 128),
        ("with space and ~", "with space and ~"),
        ("x" * 129, None),
        ("", None),
        ("tab\there", None),
        ("ümlaut", None),
    ],
)
def test_the_callers_id_is_kept_up_to_128_printable_characters(theirs: str, kept: str | None) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            for stream, model in ((True, "m"), (False, "m"), (True, "nobody")):
                body = {"model": model, "messages": HELLO, "stream": stream}
                headers = {"x-request-id": theirs.encode()}
                response = await gw.client.post("/v1/chat/completions", json=body, headers=headers)
                record = await gw.record(response)
                assert record.client_request_id == kept
                assert response.headers["x-request-id"] == record.id != theirs

    run(main())


@pytest.mark.parametrize(
    ("value", "status"), [("1", 200), ("0", 200), ("", 400), ("yes", 400), ("2", 400), ("1, 1", 400)]
)
@pytest.mark.parametrize("stream", [True, False])
def test_the_meter_is_asked_for_by_1_and_by_nothing_else(value: str, status: int, stream: bool) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            response = await gw.client.post(
                "/v1/chat/completions", json=gw.chat(stream), headers={"x-gateway-meter": value}
            )
            assert response.status_code == status
            if status == 400:
                error = response.json()["error"]
                assert (error["param"], error["code"]) == ("x-gateway-meter", "invalid_value")
                assert "x-gateway-meter" in error["message"]
            else:
                assert (": gateway {" in response.text) == (value == "1" and stream)
                assert "x-gateway-meter" not in dict(gw.sims[0].stats.seen[-1].headers)

    run(main())
