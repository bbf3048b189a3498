"""A client that takes exact note of what a simulated provider puts on the wire, and of how it ends."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httptools
import orjson

from gateway.simulator import SimulatedProvider

# Waited out only where the server is meant to stay silent; elsewhere it is far longer than anything takes.
_QUIET_S = 0.25
_PATIENCE_S = 20.0


@dataclass
class Seen:
    """`ending`: `complete` (a whole HTTP message), `fin`, `reset` or `silent`."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ending: str = "silent"
    reads: list[bytes] = field(default_factory=list)
    raw: bytes = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.ending = "complete"

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def frames(self) -> list[bytes]:
        return [frame for frame in self.body.split(b"\n\n") if frame]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """Every event that is a whole JSON object."""
        found = []
        for frame in self.frames:
            try:
                found.append(orjson.loads(frame.removeprefix(b"data: ")))
            except orjson.JSONDecodeError:
                continue
        return found

    def text(self, name: str = "content") -> str:
        deltas = [choice["delta"] for chunk in self.chunks for choice in chunk.get("choices", [])]
        return "".join(delta.get(name) or "" for delta in deltas)

    @property
    def tokens(self) -> int:
        """Five characters each."""
        return len(self.text()) // 5

    @property
    def finish(self) -> str | None:
        reasons = [
            choice["finish_reason"]
            for chunk in self.chunks
            for choice in chunk.get("choices", [])
            if "finish_reason" in choice
        ]
        return next((reason for reason in reasons if reason), None)

    @property
    def usage(self) -> dict[str, Any] | None:
        return next((chunk["usage"] for chunk in self.chunks if chunk.get("usage")), None)

    @property
    def done(self) -> bool:
        return self.frames[-1:] == [b"data: [DONE]"]


def written(path: str, body: bytes, method: str = "POST", version: str = "1.1", headers: str = "") -> bytes:
    lines = f"{method} {path} HTTP/{version}\r\nHost: sim\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return lines.encode() + body


def chat(**fields: Any) -> bytes:
    return orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}], **fields})


async def exchange(sim: SimulatedProvider, request: bytes, silent: bool = False) -> Seen:
    """Sends the bytes on a new connection; reads until the answer is whole or ends (`silent`: or rests)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", sim.port)
    seen = Seen()
    parser = httptools.HttpResponseParser(seen)
    try:
        writer.write(request)
        while seen.ending == "silent":
            read = await asyncio.wait_for(reader.read(65_536), _QUIET_S if silent else _PATIENCE_S)
            if not read:
                seen.ending = "fin"
                break
            seen.raw += read
            seen.reads.append(read)
            parser.feed_data(read)
            seen.status = parser.get_status_code()
    except ConnectionResetError:
        seen.ending = "reset"
    except TimeoutError:
        pass
    finally:
        writer.transport.abort()
    return seen


async def ask(sim_at: SimulatedProvider, silent: bool = False, /, **fields: Any) -> Seen:
    """One streamed chat."""
    body = chat(**{"stream": True, "stream_options": {"include_usage": True}} | fields)
    return await exchange(sim_at, written("/v1/chat/completions", body), silent)
