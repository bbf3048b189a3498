"""The control endpoint over real sockets."""

import asyncio
from typing import Any

import httpx
import pytest

from gateway.simulator import Script, SimulatedProvider
from gateway.simulator.parse import read_script
from tests.simulator.seen import ask

FAST = Script(name="hare", ttft=0.0, tps=1e6, output_tokens=12, api_key="sk-secret")


def controlled(*posts: dict[str, Any], query: str = "") -> tuple[list[int], dict[str, Any], SimulatedProvider]:
    """Two chats, the posts, a look."""

    async def main() -> tuple[list[int], dict[str, Any], SimulatedProvider]:
        async with SimulatedProvider(FAST) as sim, httpx.AsyncClient(base_url=sim.root_url) as client:
            headers = {"Authorization": "Bearer sk-secret"}
            for text in ("first", "second"):
                body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": text}]}
                await client.post("/v1/chat/completions", json=body, headers=headers)
            codes = [(await client.post("/sim", json=post)).status_code for post in posts]
            return codes, (await client.get(f"/sim{query}")).json(), sim

    return asyncio.run(main())


def test_it_shows_the_script_the_counters_the_requests_and_the_times() -> None:
    _, view, sim = controlled()
    assert read_script(view["script"]) == FAST
    assert (view["counters"]["requests"], view["counters"]["streams_peak"], view["counters"]["tokens_sent"]) == (
        2,
        1,
        24,
    )
    assert view["last_requests"][0]["body"]["messages"][0]["content"] == "first"
    assert ["Authorization", "Bearer sk-secret"] in view["last_requests"][0]["headers"]
    stream = view["last_streams"][-1]
    assert stream["sent"] == list(sim.stats.streams[-1].sent)
    assert stream["ending"] == "done"
    assert stream["request_read"] <= stream["first_token"] <= stream["last_token"] <= view["now"]


def test_it_shows_the_last_so_many() -> None:
    _, view, _ = controlled(query="?last=1")
    assert [request["number"] for request in view["last_requests"]] == [2]
    assert [stream["number"] for stream in view["last_streams"]] == [2]
    assert controlled(query="?last=x")[1]["error"]["param"] == "last"


def test_it_changes_the_script_and_resets_the_counters() -> None:
    codes, view, sim = controlled({"tps": 20, "fault": {"kind": "cut", "share": 0.5}}, {"reset": True})
    assert codes == [200, 200]
    assert (view["script"]["tps"], view["script"]["faults"][0]["kind"]) == (20, "cut")
    assert (view["counters"]["requests"], view["last_streams"]) == (0, [])
    assert sim.script.output_tokens == 12


@pytest.mark.parametrize("post", [{"tsp": 1}, {"name": "x"}, {"outage": "refuse"}, {"reset": "yes"}])
def test_a_wrong_change_is_refused_and_changes_nothing(post: dict[str, Any]) -> None:
    codes, view, _ = controlled(post)
    assert codes == [400]
    assert read_script(view["script"]) == FAST


def test_old_chunk_times_are_forgotten_but_not_the_rest() -> None:
    async def main() -> None:
        async with SimulatedProvider(Script(ttft=0, tps=1e6, output_tokens=2)) as sim:
            for _ in range(101):
                await ask(sim)
            oldest, second = sim.stats.streams[0], sim.stats.streams[1]
            assert (oldest.traced, list(oldest.sent), oldest.tokens) == (False, [], 2)
            assert (second.traced, len(second.sent)) == (True, 2)
            assert oldest.first_token is not None

    asyncio.run(main())


def test_waiting_for_a_condition_that_never_comes_times_out() -> None:
    async def main() -> None:
        async with SimulatedProvider(FAST) as sim:
            with pytest.raises(TimeoutError):
                await sim.until(lambda stats: stats.requests == 99, timeout_s=0.01)

    asyncio.run(main())


def test_an_outage_that_begins_at_once_does_not_swallow_the_answer_to_who_ordered_it() -> None:
    async def main() -> None:
        async with SimulatedProvider(FAST) as sim, httpx.AsyncClient(base_url=sim.root_url) as client:
            outage = {"at": 0, "for": 3600, "set": {"outage": "refuse"}}
            answer = await client.post("/sim", json={"schedule": [outage]})
            assert answer.json()["script"]["schedule"] == [outage]
            with pytest.raises(httpx.ConnectError):
                await client.get("/sim")

    asyncio.run(main())
