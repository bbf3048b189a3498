"""Who comes in: keys, allow-lists, Host and Origin, media type; and what neither side learns of the other."""

import base64
import json

import pytest

from tests.api.callers import ADMIN, ALICE, BOB, bearer, ring
from tests.live import HELLO, fast, live, run


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": "Bearer " + "x" * 4000}, 401),
        ({"authorization": ALICE}, 401),
        (bearer(ALICE), 200),
        ({"authorization": f"bearer  {ALICE}"}, 200),
        ({"x-api-key": ALICE}, 200),
        ({"authorization": "Basic " + base64.b64encode(f"me:{BOB}".encode()).decode()}, 200),
        ({"authorization": "Basic !!!"}, 401),
        (bearer(ADMIN), 200),
    ],
)
def test_a_key_is_taken_as_bearer_or_x_api_key(headers: dict[str, str], status: int) -> None:
    async def main() -> None:
        async with live(fast(), keys=ring()) as gw:
            for path in ("/v1/models", "/metrics"):
                assert (await gw.client.get(path, headers=headers)).status_code == status
            response = await gw.client.post("/v1/chat/completions", json=gw.chat(), headers=headers)
            assert response.status_code == status
            if status == 401:
                assert response.json()["error"]["code"] == "invalid_api_key"
            for path in ("/healthz", "/readyz", "/health"):
                assert (await gw.client.get(path, headers=headers)).status_code == 200

    run(main())


def test_the_callers_key_never_leaves_the_gateway() -> None:
    async def main() -> None:
        async with live(fast(), keys=ring()) as gw:
            headers = {
                **bearer(ALICE),
                "x-api-key": BOB,
                "cookie": "session=1",
                "forwarded": "for=1.2.3.4",
                "x-forwarded-for": "1.2.3.4",
                "openai-beta": "assistants=v2",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "x-evil": "1",
            }
            await gw.client.post("/v1/chat/completions", json=gw.chat(), headers=headers)
            sent = dict(gw.sims[0].stats.seen[-1].headers)
            assert set(sent) == {
                "host",
                "content-type",
                "accept",
                "accept-encoding",
                "user-agent",
                "openai-beta",
                "content-length",
            }
            assert sent["accept-encoding"] == "identity"

    run(main())


def test_account_headers_and_cookies_of_an_upstream_never_reach_the_client() -> None:
    async def main() -> None:
        headers = {
            "set-cookie": "a=b",
            "openai-organization": "org-1",
            "x-ratelimit-remaining-tokens": "5",
            "server": "secret/1.0",
            "x-request-id": "theirs",
        }
        async with live(fast(headers=headers)) as gw:
            for stream in (True, False):
                got = (await gw.post(stream=stream)).headers
                assert got["x-ratelimit-remaining-tokens"] == "5"
                assert not {"set-cookie", "openai-organization", "server"} & set(got)
                assert got["x-request-id"] != "theirs"

    run(main())


def test_an_allow_list_checks_the_names_asked_for() -> None:
    async def main() -> None:
        async with live(fast(), keys=ring()) as gw:
            listed = (await gw.client.get("/v1/models", headers=bearer(ALICE))).json()["data"]
            assert [entry["id"] for entry in listed] == ["m"]
            chat = {"model": "only-p0", "messages": HELLO}
            refused = await gw.client.post("/v1/chat/completions", json=chat, headers=bearer(ALICE))
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")
            allowed = await gw.client.post("/v1/chat/completions", json=chat, headers=bearer(BOB))
            assert allowed.status_code == 200
            unknown = await gw.client.post("/v1/chat/completions", json=chat | {"model": "x"}, headers=bearer(ALICE))
            assert "only-p0" not in unknown.text

    run(main())


def test_a_record_is_there_for_its_key_and_an_admin_only() -> None:
    async def main() -> None:
        async with live(fast(), keys=ring()) as gw:
            made = await gw.client.post("/v1/chat/completions", json=gw.chat(), headers=bearer(ALICE))
            await gw.record(made)
            url = f"/v1/generation?id={made.headers['x-request-id']}"
            statuses = [(await gw.client.get(url, headers=bearer(key))).status_code for key in (ALICE, BOB, ADMIN)]
            assert statuses == [200, 404, 200]
            shown = (await gw.client.get(url, headers=bearer(ALICE))).json()
            assert (shown["key"], shown["outcome"]) == ("alice", "ok")
            assert (await gw.client.get("/v1/generation", headers=bearer(ALICE))).status_code == 400

    run(main())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8080"}, 403),
        ({"host": "localhost"}, 200),
        ({"host": "LOCALHOST:1"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "gw.internal"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "https://app.example"}, 200),
    ],
)
def test_a_web_page_cannot_spend_keys_nor_read_by_rebinding(headers: dict[str, str], status: int) -> None:
    async def main() -> None:
        async with live(fast(), hosts=("gw.internal",), cors_origins=("https://app.example",)) as gw:
            response = await gw.client.post("/v1/chat/completions", json=gw.chat(), headers=headers)
            assert response.status_code == status
            assert (await gw.client.get("/metrics", headers=headers)).status_code == status
            if "origin" in headers:
                allowed = response.headers.get("access-control-allow-origin")
                assert allowed == (headers["origin"] if status == 200 else None)
            assert gw.sims[0].stats.requests == (1 if status == 200 else 0)

    run(main())


def test_a_preflight_is_answered_for_listed_origins_only() -> None:
    async def main() -> None:
        async with live(fast(), keys=ring(), cors_origins=("https://app.example",)) as gw:
            ask = {"access-control-request-method": "POST"}
            yes = await gw.client.options("/v1/chat/completions", headers={"origin": "https://app.example", **ask})
            no = await gw.client.options("/v1/chat/completions", headers={"origin": "https://evil.example", **ask})
            assert (yes.status_code, no.status_code) == (204, 403)
            assert "access-control-allow-origin" not in no.headers

    run(main())


def test_a_listed_page_may_send_the_headers_it_asks_for() -> None:
    async def main() -> None:
        async with live(fast(), cors_origins=("https://app.example",)) as gw:
            wanted = "authorization,content-type,x-gateway-task,x-stainless-os"
            ask = {"access-control-request-method": "POST", "access-control-request-headers": wanted}
            yes = await gw.client.options("/v1/chat/completions", headers={"origin": "https://app.example", **ask})
            assert yes.headers["access-control-allow-headers"] == wanted

    run(main())


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_cannot_post(kind: str) -> None:
    async def main() -> None:
        async with live(fast()) as gw:
            content = json.dumps(gw.chat())
            response = await gw.client.post("/v1/chat/completions", content=content, headers={"content-type": kind})
            assert response.status_code == 415
            good = {"content-type": "application/json; charset=utf-8"}
            assert (await gw.client.post("/v1/chat/completions", content=content, headers=good)).status_code == 200

    run(main())
