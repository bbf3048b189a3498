"""A llama.cpp server with a small base model, as `make test-llm` installs it."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

START_S = 60.0
MODEL = "gemma-3-270m"
TEMPLATE = """{{ bos_token }}{% for m in messages %}<start_of_turn>{{ 'model' if m['role']=='assistant' else 'user' }}
{{ m['content'] }}<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %}
"""


def _server_and_model() -> tuple[Path, Path]:
    """`LLAMA_SERVER` names another build of the server: the packaged one does not run on every processor."""
    home = Path(os.environ["GATEWAY_TEST_LLM"])
    return Path(os.environ.get("LLAMA_SERVER") or home / "bin/llama-server-vulkan"), home / "model.gguf"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def llama(scratch: Path) -> AsyncIterator[str]:
    """The server's base URL, while the block lasts."""
    port = _free_port()
    template = scratch / "chat.jinja"
    template.write_text(TEMPLATE, encoding="utf-8")
    binary, model = _server_and_model()
    command = [
        *(binary, "-m", model, "--alias", MODEL),
        *("--host", "127.0.0.1", "--port", str(port), "-c", "2048", "-np", "2", "-t", "1", "--device", "none"),
        *("--metrics", "--slots", "--jinja", "--chat-template-file", template),
    ]
    output = scratch / "llama.log"
    with output.open("wb") as log:
        server = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        await _wait_until_ready(f"http://127.0.0.1:{port}", server, output)
        yield f"http://127.0.0.1:{port}"
    finally:
        if server.returncode is None:
            server.terminate()
        await server.wait()


async def _wait_until_ready(url: str, server: asyncio.subprocess.Process, output: Path) -> None:
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(START_S):
        while True:
            if server.returncode is not None:
                raise AssertionError(_ended(server.returncode, output))
            try:
                if (await client.get(f"{url}/health")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


def _ended(code: int, output: Path) -> str:
    tail = output.read_text(encoding="utf-8", errors="replace")[-500:]
    hint = "; it was not built for this processor: set LLAMA_SERVER to another build" if code == -4 else ""
    return f"the llama.cpp server ended with {code}{hint}\n{tail}"
