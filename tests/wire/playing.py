"""Plays reels through a running gateway, all of them at once, and keeps what came of each."""

import asyncio
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx

from gateway.app import Settings
from gateway.core.clock import monotonic
from gateway.core.record import GenerationRecord
from gateway.core.types import Catalog, Deployment, Provider, Target, Timeouts
from gateway.limits.keys import KeyRing
from tests.live import HELLO, running
from tests.wire.replaying import LAST_CHUNK, Played, Reel, Replayer, chunk
from tests.wire.streams import EXPECT, data_of, passing_of, piece_of_line, pieces_of


@dataclass(slots=True)
class Seen:
    """One request: what the client got, the record, and what each upstream did, in the order of the attempts."""

    posted: float
    status: int
    headers: httpx.Headers
    body: bytes
    record: GenerationRecord
    played: list[Played]


def catalog(choices: Mapping[str, int], replayer: Replayer) -> Catalog:
    """A model for each entry, with so many deployments, each at a provider of its own and with a larger window."""
    targets: dict[str, Target] = {}
    for model, count in choices.items():
        deployments = []
        for rank in range(count):
            provider = Provider(name=f"{model}.{rank}", base_url=replayer.base_url(f"{model}.{rank}"))
            deployments.append(Deployment(f"{provider.name}/m", provider, model, "up", context=(rank + 1) * 10_000))
        targets[model] = Target(model, tuple(deployments), "order", Timeouts(connect_s=10))
    every = [deployment for target in targets.values() for deployment in target.deployments]
    return Catalog(
        targets=targets,
        public=tuple(targets),
        deployments={entry.id: entry for entry in every},
        providers={entry.provider.name: entry.provider for entry in every},
    )


class Taken:
    """What a client has been given so far."""

    def __init__(self) -> None:
        self.body = b""
        self._more = asyncio.Event()

    def take(self, data: bytes) -> None:
        self.body += data
        self._more.set()

    async def reaches(self, size: int) -> None:
        """Waits until it is so much."""
        while len(self.body) < size:
            self._more.clear()
            await self._more.wait()


async def play(
    shows: Mapping[str, tuple[Reel, ...]],
    usage_asked: bool,
    taken: Mapping[str, Taken] | None = None,
    **settings: Any,
) -> dict[str, Seen]:
    """All of them at once through one gateway; each is a model whose deployments answer with its reels in order.

    `taken`: where to follow what each client is given.
    """
    bodies = {model: Taken() for model in shows} if taken is None else taken
    replayer = Replayer({f"{model}.{rank}": reel for model, reels in shows.items() for rank, reel in enumerate(reels)})
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(replayer.serving())
        made = catalog({model: len(reels) for model, reels in shows.items()}, replayer)
        gateway, listening = await stack.enter_async_context(
            running(Settings(catalog=made, keys=KeyRing(), port=0, drain_s=1.0, **settings))
        )
        client = await stack.enter_async_context(
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{listening.port}",
                timeout=30,
                trust_env=False,
                limits=httpx.Limits(max_connections=None),
            )
        )
        asking = [ask(client, model, usage_asked, bodies[model], index * 0.004) for index, model in enumerate(shows)]
        answers = dict(zip(shows, await asyncio.gather(*asking), strict=True))
        seen = {}
        for model, (posted, response) in answers.items():
            record = gateway.services.records.get(response.headers["x-request-id"])
            assert record is not None
            played = [replayer.played[attempt.provider] for attempt in record.attempts]
            seen[model] = Seen(posted, response.status_code, response.headers, bodies[model].body, record, played)
        return seen


async def ask(
    client: httpx.AsyncClient, model: str, usage_asked: bool, taken: Taken, after_s: float
) -> tuple[float, httpx.Response]:
    await asyncio.sleep(after_s)  # starting all at once would only widen what the moments can be compared to
    body: dict[str, Any] = {"model": model, "messages": HELLO, "stream": True}
    if usage_asked:
        body["stream_options"] = {"include_usage": True}
    posted = monotonic()
    async with client.stream("POST", "/v1/chat/completions", json=body) as response:
        async for data in response.aiter_raw():
            taken.take(data)
    return posted, response


def timed(name: str) -> Reel:
    """The stream as it was recorded: a chunk and a write for each arrival."""
    pieces = [(piece.wait_s, chunk(piece.data)) for piece in pieces_of(name)]
    return Reel((*pieces, (0.0, LAST_CHUNK)))


def gated(name: str, usage_asked: bool, taken: Taken) -> Reel:
    """Each piece only after the client has all of those before it, from the first token on."""
    pieces = pieces_of(name)
    first_token = piece_of_line(name, EXPECT[name]["expect"]["first_token_line"])

    async def gate(number: int) -> None:
        before = b"".join(piece.data for piece in pieces[:number])
        if first_token < number < len(pieces):
            await taken.reaches(len(passing_of(before, usage_asked)[0]))

    return Reel((*((0.0, chunk(piece.data)) for piece in pieces), (0.0, LAST_CHUNK)), gate=gate)


def byte_by_byte(name: str) -> Reel:
    data = data_of(name)
    return Reel(tuple((0.0, data[at : at + 1]) for at in range(len(data))), chunked=False, stays=False)


def at_random(name: str, rng: random.Random) -> Reel:
    """Chunks and writes end anywhere, independently of each other; only the moments of arrival stay apart."""
    pieces = [b"".join(chunk(part) for part in torn(piece.data, rng)) for piece in pieces_of(name)]
    return Reel(tuple((0.0, part) for piece in (*pieces, LAST_CHUNK) for part in torn(piece, rng)))


def torn(data: bytes, rng: random.Random) -> list[bytes]:
    parts, at = [], 0
    while at < len(data):
        size = rng.choice((1, 2, 3, rng.randint(1, 40), rng.randint(1, 700)))
        parts.append(data[at : at + size])
        at += size
    return parts
