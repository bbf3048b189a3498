"""A real model behind the gateway: its streams pass, cancelling reaches it, and our figures are its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app import Settings
from gateway.core.types import Catalog, Deployment, Provider, Target, Timeouts
from gateway.limits.keys import KeyRing
from tests.live import Live, run, running
from tests.llm.llama import MODEL, llama

pytestmark = pytest.mark.llm

PROMPT = [{"role": "user", "content": "Tell me about the sea and its animals. " * 12}]


@asynccontextmanager
async def behind_the_gateway(scratch: Path) -> AsyncIterator[tuple[Live, str]]:
    """The gateway, and the address of the llama.cpp server behind it."""
    async with llama(scratch) as url:
        provider = Provider(name="llama", base_url=f"{url}/v1")
        deployment = Deployment(id="llama/m", provider=provider, model="m", upstream_model=MODEL)
        target = Target("m", (deployment,), "order", Timeouts())
        catalog = Catalog({"m": target}, ("m",), {deployment.id: deployment}, {provider.name: provider})
        async with (
            running(Settings(catalog=catalog, keys=KeyRing(), port=0, drain_s=1.0)) as (gateway, listening),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{listening.port}", timeout=120, trust_env=False) as client,
        ):
            yield Live(gateway, client, [], listening.port), url


def _ask(**fields: Any) -> dict[str, Any]:
    # Seeded sampling that never ends by itself: a base model may otherwise stop after a word.
    return {"model": "m", "messages": PROMPT, "stream": True, "seed": 7, "ignore_eos": True, **fields}


async def _busy_slots(url: str) -> int:
    async with httpx.AsyncClient(trust_env=False) as direct:
        return sum(slot["is_processing"] for slot in (await direct.get(f"{url}/slots")).json())


def test_our_figures_are_within_a_tenth_of_the_servers_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with behind_the_gateway(tmp_path) as (gw, _):
            for round_number in range(3):
                body = _ask(max_tokens=96, cache_prompt=False, seed=round_number)
                answer = await gw.client.post("/v1/chat/completions", json=body)
                assert answer.text.rstrip().endswith("data: [DONE]")
                record = await gw.record(answer)
                assert record.outcome == "ok"
                assert record.speed.quality == "ok"
                assert record.tokens.output == 96
                assert record.server_clock is not None
                assert record.speed.output_tps == pytest.approx(record.server_clock["tokens_per_s"], rel=0.1)
                # Until the first token is out the server has read the prompt and made one token.
                first_ms = record.server_clock["prompt_ms"] + 1000 / record.server_clock["tokens_per_s"]
                assert record.timing.ttft_ms == pytest.approx(first_ms, rel=0.1)

    run(main())


def test_an_answer_in_one_piece_has_usage_and_no_first_token(tmp_path: Path) -> None:
    async def main() -> None:
        async with behind_the_gateway(tmp_path) as (gw, _):
            answer = await gw.client.post("/v1/chat/completions", json=_ask(stream=False, max_tokens=16))
            assert answer.json()["usage"]["completion_tokens"] == 16
            record = await gw.record(answer)
            assert record.outcome == "ok"
            assert record.tokens.output == 16
            assert record.timing.ttft_ms is None

    run(main())


def test_a_client_that_leaves_stops_the_model(tmp_path: Path) -> None:
    async def main() -> None:
        async with behind_the_gateway(tmp_path) as (gw, url):
            body = _ask(max_tokens=1500)
            async with gw.client.stream("POST", "/v1/chat/completions", json=body) as answer:
                async for line in answer.aiter_lines():
                    if '"content":' in line:
                        break
                assert await _busy_slots(url) == 1
            record = await gw.record(answer)
            assert record.outcome == "cancelled"
            async with asyncio.timeout(5):
                while await _busy_slots(url):
                    await asyncio.sleep(0.05)

    run(main())
