"""TLS with a provider's own authority; an HTTP proxy: a tunnel for https, the absolute form for http."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError, ConfigError
from gateway.core.ports import Outbound
from gateway.core.types import Provider, Timeouts
from gateway.upstream.engine import HttpEngine
from tests.live import run

REQUEST = Outbound("/chat/completions", b"{}")
SOON = Timeouts(connect_s=2, tls_s=2)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def tls_server(authority: trustme.CA, name: str) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                writer.write(OK)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class Proxy:
    """Tunnels CONNECT requests and answers absolute-form ones itself; keeps the heads it saw."""

    def __init__(self, status: bytes = b"200 Connection established") -> None:
        self.status = status
        self.heads: list[str] = []
        self.port = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            method, target, _ = head.split(" ", 2)
            if method != "CONNECT":
                await reader.readexactly(2)
                writer.write(OK)
                await reader.read()
                return
            writer.write(b"HTTP/1.1 " + self.status + b"\r\n\r\n")
            host, _, port = target.rpartition(":")
            there = await asyncio.open_connection(host, int(port))
            await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
    target.transport.abort()


async def ask(provider: Provider, times: int = 1) -> list[float | None]:
    """Connect times of so many requests, one after the other."""
    engine = HttpEngine([provider], parallel=5)
    found: list[float | None] = []
    try:
        for _ in range(times):
            exchange = await engine.open(provider, REQUEST, SOON)
            try:
                assert await exchange.head(monotonic() + 3)
                assert await exchange.read(monotonic() + 3)
                assert (await exchange.read(monotonic() + 3) or (None,))[0] == b""
                exchange.release()
            finally:
                exchange.close()
            found.append(exchange.connect_s)
    finally:
        await engine.close()
    return found


def test_a_providers_own_authority_is_believed_and_the_connection_kept(authority: trustme.CA, tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(str(file))
        async with tls_server(authority, "localhost") as port:
            provider = Provider(name="p", base_url=f"https://localhost:{port}/v1", ca_file=str(file))
            first, second = await ask(provider, times=2)
            assert first is not None
            assert second is None

    run(main())


def test_a_certificate_of_an_unknown_authority_is_a_tls_error(authority: trustme.CA) -> None:
    async def main() -> None:
        async with tls_server(authority, "localhost") as port:
            with pytest.raises(AttemptError) as caught:
                await ask(Provider(name="p", base_url=f"https://localhost:{port}/v1"))
            assert caught.value.code == "tls"

    run(main())


def test_a_certificate_for_another_name_is_a_tls_error(authority: trustme.CA, tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(str(file))
        async with tls_server(authority, "elsewhere.example") as port:
            with pytest.raises(AttemptError) as caught:
                await ask(Provider(name="p", base_url=f"https://localhost:{port}/v1", ca_file=str(file)))
            assert caught.value.code == "tls"

    run(main())


def test_plain_http_where_tls_was_expected_is_a_tls_error() -> None:
    async def main() -> None:
        async with Proxy().running() as plain:
            with pytest.raises(AttemptError) as caught:
                await ask(Provider(name="p", base_url=f"https://127.0.0.1:{plain.port}/v1"))
            assert caught.value.code == "tls"

    run(main())


def test_a_ca_file_that_cannot_be_used_is_named_at_the_start(tmp_path: Path) -> None:
    for content in (None, "no certificate"):
        file = tmp_path / "ca.pem"
        if content is not None:
            file.write_text(content)
        with pytest.raises(ConfigError, match=r"providers\.p\.ca_file"):
            HttpEngine([Provider(name="p", base_url="https://localhost/v1", ca_file=str(file))], parallel=1)


def test_https_goes_through_a_tunnel_with_the_proxys_credential(authority: trustme.CA, tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(str(file))
        async with tls_server(authority, "localhost") as port, Proxy().running() as proxy:
            provider = Provider(
                name="p",
                base_url=f"https://localhost:{port}/v1",
                ca_file=str(file),
                proxy=f"http://me:p%40ss@127.0.0.1:{proxy.port}",
            )
            first, second = await ask(provider, times=2)
            assert first is not None
            assert second is None
            (head,) = proxy.heads
            assert head.startswith(f"CONNECT localhost:{port} HTTP/1.1\r\n")
            assert "proxy-authorization: Basic " + base64.b64encode(b"me:p@ss").decode() in head

    run(main())


def test_http_goes_to_the_proxy_in_absolute_form() -> None:
    async def main() -> None:
        async with Proxy().running() as proxy:
            provider = Provider(
                name="p", base_url="http://api.example:81/v1", proxy=f"http://u:pw@127.0.0.1:{proxy.port}"
            )
            await ask(provider)
            (head,) = proxy.heads
            assert head.startswith(
                "POST http://api.example:81/v1/chat/completions HTTP/1.1\r\nhost: api.example:81\r\n"
            )
            assert "proxy-authorization: Basic " in head

    run(main())


@pytest.mark.parametrize("status", [b"407 Proxy Authentication Required", b"502 Bad Gateway"])
def test_a_proxy_that_refuses_is_a_connect_error(status: bytes) -> None:
    async def main() -> None:
        async with Proxy(status).running() as proxy:
            provider = Provider(name="p", base_url="https://127.0.0.1:1/v1", proxy=f"http://127.0.0.1:{proxy.port}")
            with pytest.raises(AttemptError) as caught:
                await ask(provider)
            assert caught.value.code == "connect"

    run(main())
