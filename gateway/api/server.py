"""Runs an ASGI application on uvicorn: bound sockets, quiet headers, a drain that lets streams finish."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from gateway.api.asgi import App
from gateway.api.peer import PeerProtocol
from gateway.core.errors import ConfigError

# Longer than clients keep their side open, so that the client is the one who closes.
KEEP_ALIVE_S = 75
BACKLOG = 2048
# How long requests that a shutdown ends may take to say so.
LAST_WORDS_S = 1.0


class QuietServer(uvicorn.Server):
    """uvicorn without its own signal handling: the caller decides what SIGTERM means and which exit code follows.

    `on_ready` is called when connections are accepted.
    """

    on_ready: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.on_ready is not None:
            self.on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """What still runs when the drain is over, or was cut short, is told so before its upstreams are closed."""
        await super().shutdown(sockets)
        running = list(self.server_state.tasks)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=LAST_WORDS_S)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ConfigError where the address cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError([f"server: cannot listen on {host}:{port}: {error.strerror or error}"]) from error


def make_server(app: App, drain_s: float) -> QuietServer:
    """A server for one application; `drain_s` bounds how long streams may finish after the stop."""
    config = uvicorn.Config(
        app,
        http=PeerProtocol,
        loop="none",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(drain_s)),
    )
    return QuietServer(config)


@contextlib.contextmanager
def stop_on_signals(stop: Callable[[], None], force: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call `stop` the first time and `force` after that."""
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal() -> None:
        nonlocal asked
        (force if asked else stop)()
        asked = True

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
