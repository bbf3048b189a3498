"""The composition root: makes every part from the configuration and joins them."""

import asyncio
import logging
import random
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gateway.api.application import Application, metrics_only
from gateway.api.doors import Doors, allowed_hosts
from gateway.api.names import Names
from gateway.api.pieces import Answers, Pieces
from gateway.api.reports import Reports
from gateway.api.server import QuietServer, bind, make_server, stop_on_signals
from gateway.api.services import Readiness, Services
from gateway.config import resolve
from gateway.config.hosts import host_and_port
from gateway.config.schema import Config
from gateway.config.state_folder import StateFolder
from gateway.core.clock import monotonic, wall_offset_s
from gateway.core.ports import Listener, StreamMeter
from gateway.core.types import BreakerPolicy, Catalog, SagPolicy, Timeouts
from gateway.dispatch.attempt import Attempts, MeterStart
from gateway.dispatch.dispatcher import Dispatcher
from gateway.limits.inflight import InflightBytes, Streams
from gateway.limits.keys import KeyEntry, KeyRing
from gateway.metering.book import SpeedBook
from gateway.metering.meter import Meter
from gateway.metering.served import ServedUnder
from gateway.providers.dialects import DIALECTS
from gateway.routing.health import Health
from gateway.routing.needs import needs
from gateway.routing.planner import RoutePlanner
from gateway.stores.memory import RecordStore
from gateway.stores.opening import open_folder
from gateway.stores.remembering import Remembering
from gateway.telemetry.loop_lag import watch_loop_lag
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.request_log import RequestLog
from gateway.upstream.engine import HttpEngine

log = logging.getLogger("gateway")

# How often a drain looks whether the last stream has ended, and how long the server waits for bytes on their way.
DRAIN_LOOK_S = 0.05
LAST_BYTES_S = 1.0
# How often running streams are asked how far they are.
LOOK_EVERY_S = 1.0
# Deployments that are judged before others have a turn.
JUDGED_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """What the gateway is made of, in core's words. Sizes in bytes, times in seconds. `state` None: in memory only."""

    catalog: Catalog
    keys: KeyRing
    timeouts: Timeouts = field(default_factory=Timeouts)
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    sag: SagPolicy = field(default_factory=SagPolicy)
    open_providers: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8080
    hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    metrics_listen: tuple[str, int] | None = None
    max_body: int = 32 * 10**6
    max_inflight_bytes: int = 10**9
    max_streams: int = 2000
    drain_s: float = 300.0
    keepalive_after_s: float = 10.0
    request_log: str | None = None
    state: StateFolder | None = None


def settings_of(config: Config) -> Settings:
    """A validated configuration in core's words; the state folder is the environment's to say, and is left out."""
    server, telemetry = config.server, config.telemetry
    listen = server.metrics_listen
    return Settings(
        catalog=resolve.catalog(config),
        keys=KeyRing(
            [KeyEntry(key.name, key.key, frozenset(key.models) if key.models else None) for key in config.auth.keys],
            config.auth.admin_keys,
        ),
        timeouts=resolve.default_timeouts(config),
        breaker=resolve.breaker_policy(config),
        sag=resolve.sag_policy(config),
        open_providers=resolve.open_providers(config),
        host=server.host,
        port=server.port,
        hosts=server.hosts,
        cors_origins=server.cors_origins,
        metrics_listen=None if listen is None else host_and_port(listen),
        max_body=server.max_body,
        max_inflight_bytes=server.max_inflight_bytes,
        max_streams=server.max_streams,
        drain_s=server.drain_timeout,
        keepalive_after_s=server.keepalive_after,
        request_log=None if telemetry.request_log == "off" else telemetry.request_log,
    )


@dataclass(frozen=True, slots=True)
class Gateway:
    """The joined parts. `application` is the ASGI app; `close` when nothing runs any more."""

    settings: Settings
    services: Services
    application: Application
    engine: HttpEngine
    health: Health
    book: SpeedBook
    metrics: Metrics
    request_log: RequestLog | None
    remembering: Remembering | None

    async def close(self) -> None:
        """Closes upstream connections and writes the tails of the state and of the request log."""
        await self.engine.close()
        if self.remembering is not None:
            await self.remembering.close()
        if self.request_log is not None:
            await asyncio.to_thread(self.request_log.close)


def assemble(settings: Settings, further: Iterable[Listener] = ()) -> Gateway:
    """Makes the parts; `further` listeners hear of every record too. Needs no running event loop.

    Raises ConfigError where a file cannot be opened.
    """
    catalog = settings.catalog
    metrics = Metrics(catalog, open_providers=settings.open_providers)
    book = SpeedBook(monotonic, offset_s=wall_offset_s(), booked_under=ServedUnder(catalog.deployments.values()))
    health = Health(
        catalog.deployments.values(), settings.breaker, settings.sag, book, _announcing(metrics), clock=monotonic
    )
    metrics.watch_speeds(book)
    metrics.watch_states(lambda deployment: health.health(deployment, monotonic()).state)
    remembering = _remembering(settings.state, book, metrics)
    store = RecordStore() if remembering is None else remembering.state
    request_log = RequestLog(settings.request_log) if settings.request_log else None
    engine = HttpEngine(catalog.providers.values(), settings.max_streams)
    rng = random.Random()
    # Health judges a sag on the book's evidence, so the book hears of a request first.
    listeners: list[Listener] = [book, health, metrics, store, *further]
    if request_log is not None:
        listeners.append(request_log)
    dispatcher = Dispatcher(
        planner=RoutePlanner(catalog, health, rng),
        health=health,
        attempts=Attempts(engine, DIALECTS, _meter_maker(book), book),
        gauges=metrics,
        listeners=listeners,
        running=book,
        keepalive_after_s=settings.keepalive_after_s,
        rng=rng,
    )
    services = Services(
        names=Names(catalog, settings.open_providers, settings.timeouts),
        doors=_doors(settings),
        dispatcher=dispatcher,
        streams=Streams(settings.max_streams),
        bodies=InflightBytes(settings.max_inflight_bytes),
        records=store,
        reports=Reports(book, health, metrics.under_way, Pieces(monotonic), Answers(monotonic)),
        readiness=Readiness(),
        needs=needs,
        scrape=metrics.scrape,
        metrics_type=metrics.content_type,
        max_body=settings.max_body,
        metrics_apart=settings.metrics_listen is not None,
    )
    return Gateway(settings, services, Application(services), engine, health, book, metrics, request_log, remembering)


def _remembering(folder: StateFolder | None, book: SpeedBook, metrics: Metrics) -> Remembering | None:
    state = open_folder(folder)
    if state is None:
        return None
    metrics.watch_state_dropped(lambda: state.dropped)
    return Remembering(state, book)


def _doors(settings: Settings) -> Doors:
    origins = frozenset(origin.rstrip("/").lower() for origin in settings.cors_origins)
    return Doors(allowed_hosts(settings.host, settings.hosts), origins, settings.keys)


def _announcing(metrics: Metrics) -> Callable[[str, str, str], None]:
    """Tells the metrics and the log of a deployment's new state."""

    def announce(deployment_id: str, to: str, reason: str) -> None:
        metrics.transition(deployment_id, to, reason)
        log.info("%s is now %s (%s)", deployment_id, to, reason)

    return announce


def _meter_maker(book: SpeedBook) -> Callable[[MeterStart], StreamMeter]:
    def make(start: MeterStart) -> StreamMeter:
        deployment_id = start.deployment.id
        cold = book.cold(deployment_id, start.sent)
        return Meter(
            start.sent,
            chars_per_token=book.chars_per_token(deployment_id),
            prompt_estimate=start.prompt_tokens,
            marks=tuple(name for name, holds in (("cold", cold), ("retry", start.retry)) if holds),
            asked_tier=start.asked_tier,
            tools=start.tools,
        )

    return make


class Listening:
    """The bound sockets and the servers on them."""

    def __init__(self, gateway: Gateway) -> None:
        """Raises ConfigError where an address cannot be had."""
        settings = gateway.settings
        self._gateway = gateway
        self._socket = bind(settings.host, settings.port)
        # The drain is ours (`stop`); the server itself only waits for the last bytes.
        self._server = make_server(gateway.application, LAST_BYTES_S)
        self._drained_by = 0.0
        self._apart: tuple[QuietServer, socket.socket] | None = None
        if settings.metrics_listen is not None:
            try:
                apart = bind(*settings.metrics_listen)
            except BaseException:
                self._socket.close()
                raise
            self._apart = (make_server(metrics_only(gateway.services), 1.0), apart)

    @property
    def port(self) -> int:
        """The port that was bound; where 0 was asked for, the one the system chose."""
        port: int = self._socket.getsockname()[1]
        return port

    def stop(self) -> None:
        """Readiness fails and new requests are refused at once; streams finish within the drain timeout.

        The listener stays until then: a balancer reads `draining`, a client a 503 that says when to come back.
        """
        self._gateway.services.readiness.ready = False
        self._drained_by = monotonic() + self._gateway.settings.drain_s
        self._end_when_drained()

    def _end_when_drained(self) -> None:
        if self._gateway.services.streams.open and monotonic() < self._drained_by:
            asyncio.get_running_loop().call_later(DRAIN_LOOK_S, self._end_when_drained)
        else:
            self._server.should_exit = True

    def force(self) -> None:
        """Ends now, streams or not."""
        self._gateway.services.readiness.ready = False
        self._server.should_exit = True
        self._server.force_exit = True

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Serves until `stop`. Closes the gateway's parts at the end."""
        remembering = self._gateway.remembering
        if remembering is not None:
            await asyncio.to_thread(remembering.restore)

        def ready() -> None:
            self._gateway.services.readiness.ready = True
            on_ready()

        self._server.on_ready = ready
        lag = asyncio.create_task(watch_loop_lag(self._gateway.metrics.loop_lag))
        looking = asyncio.create_task(self._look_at_streams())
        noting = asyncio.create_task(_noting(remembering))
        for task in (lag, looking, noting):
            task.add_done_callback(say_why)
        apart = asyncio.create_task(self._serve_apart())
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            if self._apart is not None:
                self._apart[0].should_exit = True
            lag.cancel()
            looking.cancel()
            noting.cancel()
            await asyncio.gather(lag, looking, noting, apart, return_exceptions=True)
            self._socket.close()
            await self._gateway.close()

    async def _look_at_streams(self) -> None:
        """A stream that crawls or stays silent is seen before it ends."""
        gateway = self._gateway
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = monotonic()
            news = gateway.book.look(now)
            for start in range(0, len(news), JUDGED_AT_ONCE):
                gateway.health.look(news[start : start + JUDGED_AT_ONCE], now)
                await asyncio.sleep(0)

    async def _serve_apart(self) -> None:
        if self._apart is not None:
            server, listening = self._apart
            await server.serve(sockets=[listening])
            listening.close()


def say_why(task: "asyncio.Task[None]") -> None:
    """A task that should run until the stop, and ended by a fault of ours."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("%s stopped", task.get_coro(), exc_info=error)


async def _noting(remembering: Remembering | None) -> None:
    if remembering is not None:
        await remembering.run()


async def serve(gateway: Gateway, on_ready: Callable[[Listening], None]) -> None:
    """Serves until SIGINT or SIGTERM; a second signal ends the drain."""
    listening = Listening(gateway)
    with stop_on_signals(listening.stop, listening.force):
        await listening.run(lambda: on_ready(listening))
