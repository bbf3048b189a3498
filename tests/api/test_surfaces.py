"""What comes in: limits, bad input, paths, models; each refused with a status and a field that help."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from gateway.api.body import parse_object
from gateway.core.types import Timeouts
from gateway.dispatch.upstream_request import dumps
from gateway.simulator.faults import Silence
from tests.api.callers import ALICE, bearer, ring
from tests.live import HELLO, fast, live, run

BAD_BODIES: list[tuple[Any, int, str | None, str]] = [
    (b"", 400, None, "JSON"),
    (b"{", 400, None, "JSON"),
    (b"[]", 400, None, "object"),
    (b'{"model": "m", "messages": [{"role": "user", "content": NaN}]}', 400, None, "JSON"),
    (b"\xff\xfe", 400, None, "JSON"),
    (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, None, "JSON"),
    ({"messages": HELLO}, 400, "model", "model"),
    ({"model": 5, "messages": HELLO}, 400, "model", "model"),
    ({"model": "", "messages": HELLO}, 400, "model", "model"),
    ({"model": "m"}, 400, "messages", "messages"),
    ({"model": "m", "messages": []}, 400, "messages", "messages"),
    ({"model": "m", "messages": "hi"}, 400, "messages", "messages"),
    ({"model": "m", "messages": ["hi"]}, 400, "messages", "messages"),
    ({"model": "m", "messages": HELLO, "stream": "yes"}, 400, "stream", "stream"),
    ({"model": "m", "messages": HELLO, "stream_options": 1}, 400, "stream_options", "stream_options"),
    ({"model": "m", "messages": HELLO, "provider": {"sort": "price"}}, 400, "provider", "provider"),
    ({"model": "nope", "messages": HELLO}, 404, "model", "only-p0"),
    ({"model": "n" * 5000, "messages": HELLO}, 404, "model", "does not exist"),
]


@pytest.mark.parametrize(("body", "status", "param", "says"), BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_bad_input_is_refused_naming_the_field(body: Any, status: int, param: str | None, says: str) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers = {"content-type": "application/json"}
            response = await gw.client.post("/v1/chat/completions", content=content, headers=headers)
            assert response.status_code == status
            error = response.json()["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert error["param"] == param
            assert says in error["message"]
            assert len(error["message"]) < 1000
            assert response.headers["x-request-id"].startswith("gen-")
            assert gw.sims[0].stats.requests == 0

    run(main())


@pytest.mark.parametrize(
    "extra",
    [
        {"stream": None},
        {"tools": [], "seed": None, "logprobs": None, "n": 1, "store": False, "metadata": {"a": 1}},
        {"service_tier": "auto", "prompt_cache_key": "k", "max_tokens": 5, "max_completion_tokens": 5},
        {"unknown_field": {"deep": [1, 2.5, "x", None, 12345678901234567890]}},
    ],
)
def test_unknown_fields_pass_through_untouched(extra: dict[str, Any]) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            body = gw.chat(stream=False) | extra
            response = await gw.client.post(
                "/v1/chat/completions", content=json.dumps(body), headers={"content-type": "application/json"}
            )
            assert response.status_code == 200
            sent = gw.sims[0].stats.seen[-1].body
            assert isinstance(sent, dict)
            assert {key: sent.get(key) for key in extra} == extra
            assert sent["model"] == "up"

    run(main())


def test_half_an_emoji_is_parsed_and_written_again() -> None:
    data = b'{"content": "cut \\ud83d", "n": 1.0}'
    body = parse_object(data)
    assert body == {"content": "cut \ud83d", "n": 1.0}
    assert json.loads(dumps(body)) == body


def test_accept_decides_nothing_and_stream_does() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            for stream, kind in ((True, "text/event-stream"), (False, "application/json")):
                response = await gw.client.post(
                    "/v1/chat/completions", json=gw.chat(stream), headers={"accept": "application/json"}
                )
                assert response.headers["content-type"].startswith(kind)
                response = await gw.client.post(
                    "/v1/chat/completions", json=gw.chat(stream), headers={"accept": "text/event-stream"}
                )
                assert response.headers["content-type"].startswith(kind)

    run(main())


def test_a_stream_is_never_compressed_and_never_buffered() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            response = await gw.client.post(
                "/v1/chat/completions", json=gw.chat(), headers={"accept-encoding": "gzip, br, zstd"}
            )
            assert "content-encoding" not in response.headers
            assert response.headers["x-accel-buffering"] == "no"
            assert response.headers["cache-control"] == "no-cache"

    run(main())


def test_usage_is_asked_for_and_stripped_unless_the_client_asked() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            silent = await gw.post()
            assert '"choices":[]' not in silent.text
            asked = await gw.post(stream_options={"include_usage": True})
            assert '"choices":[]' in asked.text
            seen = [entry.body for entry in gw.sims[0].stats.seen]
            assert all(body and body["stream_options"] == {"include_usage": True} for body in seen)
            assert (await gw.record(silent)).tokens == (await gw.record(asked)).tokens

    run(main())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nope", 404),
        ("GET", "/", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
        ("DELETE", "/v1/models/m", 405),
        ("GET", "/v1/models/", 404),
        ("GET", "/v1/models/nope", 404),
        ("GET", "/v1/models/m", 200),
        ("HEAD", "/healthz", 200),
    ],
)
def test_unknown_paths_and_methods_have_openais_error_body(method: str, path: str, status: int) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            response = await gw.client.request(method, path)
            assert response.status_code == status
            if status >= 400:
                assert response.json()["error"]["type"] == "invalid_request_error"

    run(main())


def test_a_body_over_the_limit_is_refused_declared_or_not() -> None:
    async def main() -> None:
        async with live(fast(), max_body=1000) as gw:
            big = gw.chat(stream=False, user="x" * 2000)
            assert (await gw.client.post("/v1/chat/completions", json=big)).status_code == 413

            async def pieces() -> Any:
                for _ in range(20):
                    yield b" " * 100

            headers = {"content-type": "application/json"}
            response = await gw.client.post("/v1/chat/completions", content=pieces(), headers=headers)
            assert response.status_code == 413
            assert gw.gateway.services.bodies.held == 0  # type: ignore[attr-defined]
            assert (await gw.post()).status_code == 200

    run(main())


def test_bodies_kept_for_all_requests_together_are_bounded() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=30)
        async with live(fast(faults=(Silence(),)), timeouts=limits, max_inflight_bytes=3000) as gw:
            first = asyncio.create_task(gw.post(user="x" * 2000))
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            refused = await gw.post(user="x" * 2000)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) >= 1
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

    run(main())


def test_streams_over_the_limit_are_refused_at_once() -> None:
    async def main() -> None:
        limits = Timeouts(connect_s=2, ttft_s=30)
        async with live(fast(faults=(Silence(),)), timeouts=limits, max_streams=1) as gw:
            first = asyncio.create_task(gw.post())
            await gw.sims[0].until(lambda stats: stats.requests == 1)
            refused = await gw.post()
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) >= 1
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            async with asyncio.timeout(1):
                while gw.gateway.services.streams.open:  # type: ignore[attr-defined]
                    await asyncio.sleep(0.001)

    run(main())


def test_the_callers_own_request_id_is_kept_beside_ours() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            for theirs, kept in (("abc-1", "abc-1"), ("x" * 129, None), ("a\tb", None)):
                response = await gw.client.post(
                    "/v1/chat/completions", json=gw.chat(), headers={"x-request-id": theirs, "x-gateway-task": "t1"}
                )
                record = await gw.record(response)
                assert (record.client_request_id, record.task) == (kept, "t1")
                assert response.headers["x-request-id"] != theirs

    run(main())


def test_a_giant_head_is_refused() -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            response = await gw.client.get("/healthz", headers={"x-a": "y" * 70_000})
            assert response.status_code == 431

    run(main())


def test_metrics_can_be_served_apart() -> None:
    async def main() -> None:
        async with live(fast(), metrics_listen=("127.0.0.1", 0)) as gw:
            assert (await gw.client.get("/metrics")).status_code == 404

    run(main())


def test_a_refused_request_leaves_a_record_and_counts() -> None:
    async def main() -> None:
        async with live(fast(), keys=ring()) as gw:
            refused = await gw.client.post(
                "/v1/chat/completions", json={"model": "nobody", "messages": HELLO}, headers=bearer(ALICE)
            )
            record = await gw.record(refused)
            assert (record.outcome, record.error, record.requested_model) == ("error", "not_found", "nobody")
            assert (record.key, record.attempts, record.deployment) == ("alice", (), None)
            url = f"/v1/generation?id={record.id}"
            assert (await gw.client.get(url, headers=bearer(ALICE))).status_code == 200
            metrics = (await gw.client.get("/metrics", headers=bearer(ALICE))).text
            assert 'gateway_requests_total{model="other",tier="none",outcome="error"} 1' in metrics

    run(main())


def test_a_drain_fails_readiness_at_once_and_lets_streams_finish() -> None:
    async def main() -> None:
        async with live(fast(tps=100, output_tokens=40), drain_s=10.0) as gw:
            async with gw.client.stream("POST", "/v1/chat/completions", json=gw.chat()) as response:
                pieces = response.aiter_text()
                await anext(pieces)
                gw.listening.stop()
                async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gw.port}", trust_env=False) as newcomer:
                    assert (await newcomer.get("/readyz")).json() == {"status": "draining"}
                    refused = await newcomer.post("/v1/chat/completions", json=gw.chat())
                    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
                text = "".join([piece async for piece in pieces])
            assert text.endswith("data: [DONE]\n\n")

    run(main())


@pytest.mark.parametrize("query", ["?limit=1000", "?limit=20&after_id=x&before_id=y", "?beta=true", "?limit=", "?%zz"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/m"])
def test_models_are_listed_whatever_a_client_adds(path: str, query: str) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            headers = {"anthropic-version": "2026-10-21", "anthropic-beta": "a-1,b-2", "x-stainless-os": "Linux"}
            response = await gw.client.get(path + query, headers=headers)
            assert response.status_code == 200
            shown = response.json()
            assert shown["object"] in ("list", "model")
            assert "m" in ([entry["id"] for entry in shown["data"]] if "data" in shown else [shown["id"]])

    run(main())
