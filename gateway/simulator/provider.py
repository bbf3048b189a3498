"""One simulated provider: a listening port with a script behind it."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

from gateway.core.clock import monotonic
from gateway.simulator.connection import Connection, Reply, Request
from gateway.simulator.control import Control
from gateway.simulator.parse import read_script, show
from gateway.simulator.schedule import next_change, script_at
from gateway.simulator.script import Script
from gateway.simulator.service import Service
from gateway.simulator.truth import Stats

_BACKLOG = 4096


class SimulatedProvider:
    """`async with SimulatedProvider(Script(...)) as sim:` serves on `sim.base_url` until the block is left.

    Raises ConfigError for a script that `read_script` would refuse, OSError where the port is taken. Leaving aborts
    every connection at once. `script` is what was set; what the schedule makes of it changes by itself.
    """

    def __init__(self, script: Script | None = None, *, host: str = "127.0.0.1") -> None:
        self.script = _checked(script or Script())
        self.stats = Stats()
        self._host = host
        self._effective = self.script
        self._epoch = monotonic()
        self._port = self.script.port
        self._guard: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reopening: asyncio.Task[None] | None = None
        self._connections: set[Connection] = set()
        self._gone = asyncio.Event()
        self._service = Service(self.live, self.stats, Control(lambda: self.script, self.stats, self._change).reply)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """The port it listens on; it stays the same through outages, and when started again."""
        assert self._port, "not started"
        return self._port

    @property
    def root_url(self) -> str:
        """Without `/v1`: where `/sim` and `/healthz` are."""
        return f"http://{self._host}:{self.port}"

    @property
    def base_url(self) -> str:
        """What a client of the OpenAI API is given."""
        return f"{self.root_url}/v1"

    async def start(self) -> None:
        """Binds, listens, and starts the schedule's clock."""
        self._guard = _bound(self._host, self._port)
        self._port = self._guard.getsockname()[1]
        self._epoch = monotonic()
        self._effective = replace(self.script, outage=None)
        await self._listen()
        self._refresh()

    async def stop(self) -> None:
        """Refuses new connections and resets all others; returns when they are gone."""
        if self._timer is not None:
            self._timer.cancel()
        if self._reopening is not None:
            await self._reopening
        self._close_port()
        for connection in list(self._connections):
            connection.kill()
        while self._connections:
            self._gone.clear()
            await self._gone.wait()
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def set(self, script: Script) -> None:
        """Changes the script now, speeds also of running answers. A new schedule starts at 0; name and port stay."""
        script = _checked(script)
        if script.schedule != self.script.schedule:
            self._epoch = monotonic()
        self.script = replace(script, name=self.script.name, port=self.script.port)
        self._refresh()

    def change(self, **fields: Any) -> None:
        """`set` with some fields changed: `sim.change(tps=20)`."""
        self.set(replace(self.script, **fields))

    async def until(self, condition: Callable[[Stats], bool], timeout_s: float = 5.0) -> None:
        """Waits until `condition(stats)` holds, without polling; TimeoutError otherwise."""
        await self.stats.until(condition, timeout_s)

    def live(self) -> Script:
        """The script as the schedule has it at this moment."""
        return self._effective

    # What connections ask

    def reply(self, request: Request) -> Reply:
        """Answers one request."""
        return self._service.reply(request)

    def joined(self, connection: Connection) -> None:
        """A connection was accepted."""
        self._connections.add(connection)
        self.stats.connected()
        if self._effective.outage is not None or self._server is None:
            connection.kill()

    def left(self, connection: Connection) -> None:
        """A connection is gone."""
        self._connections.discard(connection)
        self.stats.disconnected()
        if not self._connections:
            self._gone.set()

    # The schedule

    def _change(self, changes: Mapping[str, Any]) -> None:
        # In the next turn: an outage that begins now must not swallow the answer to the one who ordered it.
        asyncio.get_running_loop().call_soon(lambda: self.change(**changes))

    def _refresh(self) -> None:
        """Applies what the script says now and arms the timer for its next change."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elapsed = monotonic() - self._epoch
        before, self._effective = self._effective.outage, script_at(self.script, elapsed)
        if self._guard is not None and self._effective.outage != before:
            self._switch(self._effective.outage)
        change = next_change(self.script, elapsed)
        if change is not None and self._guard is not None:
            self._timer = asyncio.get_running_loop().call_at(self._epoch + change, self._refresh)

    def _switch(self, outage: str | None) -> None:
        if outage is not None:
            for connection in list(self._connections):
                connection.fall()
        if outage == "refuse":
            self._close_port()
        elif self._server is None and self._reopening is None:
            self._reopening = asyncio.get_running_loop().create_task(self._reopen())

    async def _reopen(self) -> None:
        try:
            await self._listen()
        finally:
            self._reopening = None
        if self._effective.outage == "refuse":
            self._close_port()

    async def _listen(self) -> None:
        listener = _bound(self._host, self.port)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), sock=listener, backlog=_BACKLOG)

    def _close_port(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


def _bound(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen: it holds the port through an outage, while connecting to it is refused."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def _checked(script: Script) -> Script:
    """A script made in code obeys the rules of one that was read."""
    return read_script(show(script))
