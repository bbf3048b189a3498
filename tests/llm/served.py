"""`gateway serve`, a process of its own, in front of one model server."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.llm.llama import MODEL, Llama, llama
from tests.llm.processes import free_port, running

CONFIG = """
version: 1
server: {{port: {port}, drain_timeout: 1s}}
telemetry: {{request_log: "{log}"}}
providers:
  llama: {{base_url: "{url}/v1", api_key: none}}
models:
  m: {{deployments: [{{provider: llama, model: {model}}}]}}
"""
CHAT = "/v1/chat/completions"
RECORD_S = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One stream as the client had it."""

    id: str
    events: list[dict[str, Any]]
    done: bool

    @property
    def text(self) -> str:
        return "".join(c["delta"].get("content") or "" for event in self.events for c in event["choices"])

    @property
    def usage(self) -> dict[str, Any] | None:
        return next((event["usage"] for event in self.events if event.get("usage")), None)

    @property
    def server_clock(self) -> dict[str, Any]:
        """The server's `timings` of this request."""
        clock: dict[str, Any] = next(event["timings"] for event in reversed(self.events) if "timings" in event)
        return clock


@dataclass(frozen=True, slots=True)
class Served:
    """The gateway through `client`, the server behind it as `llama`."""

    client: httpx.AsyncClient
    llama: Llama
    log: Path

    async def stream(self, **fields: Any) -> Answer:
        return await read(self.client, {"model": "m", **fields})

    async def record(self, generation_id: str) -> dict[str, Any]:
        """The record, which is made in the moment after the last byte."""
        async with asyncio.timeout(RECORD_S):
            while True:
                answer = await self.client.get("/v1/generation", params={"id": generation_id})
                if answer.status_code == 200:
                    record: dict[str, Any] = answer.json()
                    return record
                await asyncio.sleep(0.01)

    async def last_logged(self, within_s: float) -> dict[str, Any]:
        """The newest line of the request log: the record of a client that left without an answer's id."""
        async with asyncio.timeout(within_s):
            while not (lines := self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []):
                await asyncio.sleep(0.01)
        line: dict[str, Any] = json.loads(lines[-1])
        return line


@asynccontextmanager
async def served(scratch: Path) -> AsyncIterator[Served]:
    """Server and gateway, while the block lasts."""
    async with llama(scratch) as model_server:
        port, config, log = free_port(), scratch / "gateway.yaml", scratch / "requests.jsonl"
        config.write_text(CONFIG.format(port=port, log=log, url=model_server.url, model=MODEL), encoding="utf-8")
        url = f"http://127.0.0.1:{port}"
        command: list[str | Path] = [sys.executable, "-m", "gateway", "serve", "-c", config]
        async with (
            running(command, f"{url}/readyz", scratch / "gateway.log"),
            httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as client,
        ):
            yield Served(client, model_server, log)


async def read(client: httpx.AsyncClient, body: dict[str, Any]) -> Answer:
    """Streams one chat completion to its end."""
    events, done = [], False
    async with client.stream("POST", CHAT, json={"stream": True, **body}) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for line in answer.aiter_lines():
            if line == "data: [DONE]":
                done = True
            elif line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
    return Answer(answer.headers.get("x-request-id", ""), events, done)
