"""The demo's client: streams at a steady rate, whatever becomes of the answers."""

import asyncio
import os
import random
import signal

import httpx

PROMPTS = (
    "Write a function that merges two sorted lists.",
    "Explain what this stack trace means and how to fix it.",
    "Rename the variable and update the tests.",
    "Summarise the diff in one sentence.",
)
# More than that at once means that the gateway hangs: the demo shows it, and does not pile up.
MAX_OPEN = 400


async def send_traffic(url: str, model: str, rate: float) -> None:
    """Sends `rate` requests a second in exponential gaps until SIGTERM or until the parent is gone."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    parent = os.getppid()
    rng = random.Random(1)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
    async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
        running: set[asyncio.Task[None]] = set()
        while not stopped.is_set() and os.getppid() == parent:
            if len(running) < MAX_OPEN:
                task = asyncio.create_task(_one(client, url, model, rng))
                running.add(task)
                task.add_done_callback(running.discard)
            try:
                async with asyncio.timeout(rng.expovariate(rate)):
                    await stopped.wait()
            except TimeoutError:
                continue
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _one(client: httpx.AsyncClient, url: str, model: str, rng: random.Random) -> None:
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": rng.choice(PROMPTS)}]}
    try:
        async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
            async for _ in response.aiter_raw():
                pass
    except httpx.HTTPError:
        return  # the gateway counts it; the client goes on
