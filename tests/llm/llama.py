"""A llama.cpp server with a small base model, as `make test-llm` installs it, and what it says of itself."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.llm.processes import free_port, running

MODEL = "gemma-3-270m"
TEMPLATE = """{{ bos_token }}{% for m in messages %}<start_of_turn>{{ 'model' if m['role']=='assistant' else 'user' }}
{{ m['content'] }}<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %}
"""
SLOTS = 2


@dataclass(frozen=True, slots=True)
class Llama:
    """The server at `url`, asked past the gateway."""

    url: str
    direct: httpx.AsyncClient

    async def busy(self) -> int:
        """Slots that work, as `/slots` tells it."""
        return sum(slot["is_processing"] for slot in (await self.direct.get("/slots")).json())

    async def counter(self, name: str) -> float:
        """One value of `/metrics`."""
        for line in (await self.direct.get("/metrics")).text.splitlines():
            if line.startswith(f"llamacpp:{name} "):
                return float(line.split()[1])
        raise AssertionError(f"the server has no {name}")


@asynccontextmanager
async def llama(scratch: Path) -> AsyncIterator[Llama]:
    """The server, while the block lasts."""
    home = Path(os.environ["GATEWAY_TEST_LLM"])
    template = scratch / "chat.jinja"
    template.write_text(TEMPLATE, encoding="utf-8")
    port = free_port()
    command: list[str | Path] = [
        *(home / "llama-server", "-m", home / "model.gguf", "--alias", MODEL),
        *("--host", "127.0.0.1", "--port", str(port), "-c", str(2048 * SLOTS), "-np", str(SLOTS), "-t", "1"),
        *("--device", "none", "--metrics", "--slots", "--jinja", "--chat-template-file", template),
    ]
    url = f"http://127.0.0.1:{port}"
    async with (
        running(command, f"{url}/health", scratch / "llama.log"),
        httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as direct,
    ):
        yield Llama(url, direct)
