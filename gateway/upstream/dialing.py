"""Making a connection: name look-up and TCP, an HTTP proxy's tunnel, TLS; each with its own limit and its own error."""

import asyncio
import base64
import ssl
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gateway.core.clock import monotonic
from gateway.core.errors import AttemptError, ConfigError
from gateway.core.types import Provider, Timeouts
from gateway.upstream.connection import Connection


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a provider's connections go. `proxy` is (host, port, authorization header value or None)."""

    host: str
    port: int
    tls: bool
    path: str
    proxy: tuple[str, int, str | None] | None

    @property
    def authority(self) -> str:
        """Host and port as they stand in a Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


def origin(provider: Provider) -> Origin:
    """The parts of a provider's base URL, which the configuration has validated."""
    url = urlsplit(provider.base_url)
    tls = url.scheme == "https"
    return Origin(
        host=url.hostname or "",
        port=url.port or (443 if tls else 80),
        tls=tls,
        path=url.path.rstrip("/"),
        proxy=_proxy(provider.proxy),
    )


def _proxy(address: str | None) -> tuple[str, int, str | None] | None:
    if address is None:
        return None
    url = urlsplit(address)
    secret: str | None = None
    if url.username is not None:
        plain = f"{unquote(url.username)}:{unquote(url.password or '')}"
        secret = "Basic " + base64.b64encode(plain.encode()).decode("ascii")
    return url.hostname or "", url.port or 3128, secret


def tls_context(provider: Provider) -> ssl.SSLContext:
    """Certificates are always verified, against the system's authorities or the provider's own file.

    Raises ConfigError where that file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=provider.ca_file)
    except OSError as error:  # ssl.SSLError is one
        problem = f"providers.{provider.name}.ca_file: {provider.ca_file}: {error.strerror or error}"
        raise ConfigError([problem]) from error
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(where: Origin, context: ssl.SSLContext | None, timeouts: Timeouts) -> Connection:
    """A connection ready for its first request. Raises AttemptError: `connect`, `timeout_connect`, `tls`."""
    loop = asyncio.get_running_loop()
    host, port = (where.proxy[0], where.proxy[1]) if where.proxy else (where.host, where.port)
    try:
        async with asyncio.timeout(timeouts.connect_s):
            _, connection = await loop.create_connection(lambda: Connection(loop), host, port)
    except TimeoutError:
        raise AttemptError("timeout_connect") from None
    except OSError as error:
        # Also name look-up (socket.gaierror). The system's text names addresses: for the log, not for the client.
        raise AttemptError("connect") from error
    try:
        if where.proxy is not None and context is not None:
            await _tunnel(connection, where, monotonic() + timeouts.connect_s)
        if context is not None:
            await _start_tls(connection, where, context, timeouts.tls_s)
    except BaseException:
        connection.abort()
        raise
    return connection


async def _tunnel(connection: Connection, where: Origin, until: float) -> None:
    """Asks the proxy for a tunnel (RFC 9110, section 9.3.6)."""
    assert where.proxy is not None
    target = f"[{where.host}]:{where.port}" if ":" in where.host else f"{where.host}:{where.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}"]
    if where.proxy[2]:
        lines.append(f"proxy-authorization: {where.proxy[2]}")
    connection.begin(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    try:
        if not await connection.head(until):
            raise AttemptError("timeout_connect", "the proxy did not answer in time")
    except AttemptError as error:
        if error.code == "timeout_connect":
            raise
        raise AttemptError("connect", "the proxy closed the connection") from error
    if connection.status != 200:
        raise AttemptError("connect", f"the proxy answered {connection.status}")
    connection.finish()


async def _start_tls(connection: Connection, where: Origin, context: ssl.SSLContext, limit_s: float) -> None:
    loop = asyncio.get_running_loop()
    assert connection.transport is not None
    try:
        async with asyncio.timeout(limit_s):
            transport = await loop.start_tls(connection.transport, connection, context, server_hostname=where.host)
    except TimeoutError:
        raise AttemptError("tls", "did not finish the TLS handshake in time") from None
    except (ssl.SSLError, OSError) as error:
        raise AttemptError("tls") from error
    if transport is None:
        raise AttemptError("tls", "closed the connection during the TLS handshake")
    connection.connection_made(transport)
