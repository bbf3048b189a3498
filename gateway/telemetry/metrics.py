"""The gateway's metrics: fed by finished requests and changes of state, read by a scrape."""

import asyncio
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence

from gateway import __version__
from gateway.core.clock import monotonic
from gateway.core.ports import Clock
from gateway.core.record import AttemptRecord, GenerationRecord
from gateway.core.types import Catalog, Deployment, Target
from gateway.telemetry.definitions import DEFINITIONS
from gateway.telemetry.deployments import DeploymentSeries
from gateway.telemetry.figures import DeploymentFigures, SpeedStatistics
from gateway.telemetry.labels import NO_TIER, OTHER, OUTCOMES, REASONS, TRANSITION_REASONS, one_of
from gateway.telemetry.process import ProcessMetrics
from gateway.telemetry.registry import SLICE_S, Registry, paused_every
from gateway.telemetry.render import CONTENT_TYPE

# Statistics move with requests, and reading them costs: two scrapers share one reading.
FIGURES_FOR_S = 5.0


class Metrics:
    """A `Listener`, the dispatcher's gauges, and the text of `/metrics`.

    `tiers` are the configured names a `tier` label may take; no tier reads `none`. What `open_providers` serve under
    names that callers make up (`provider/model`) counts under the provider. Not safe across threads.
    """

    content_type = CONTENT_TYPE

    def __init__(self, catalog: Catalog, *, tiers: Iterable[str] = (), open_providers: Iterable[str] = ()) -> None:
        self._registry = registry = Registry(DEFINITIONS)
        self._process = ProcessMetrics()
        self._catalog = catalog
        self._tiers = frozenset(tiers)
        self._state_of: Callable[[Deployment], str] | None = None
        self._book: SpeedStatistics | None = None
        self._clock: Clock = monotonic
        self._figures_until = 0.0
        self._requests = registry.scalar("gateway_requests_total").under()
        self._in_flight = registry.scalar("gateway_requests_in_flight").under()
        self._duration = registry.histogram("gateway_request_duration_seconds").under()
        self._client_ttft = registry.histogram("gateway_client_ttft_seconds").under()
        self._decisions = registry.scalar("gateway_route_decisions_total").under()
        self._fallbacks = registry.scalar("gateway_fallbacks_total").under()
        self._overhead = registry.histogram("gateway_overhead_seconds").child()
        self._loop_lag = registry.histogram("gateway_event_loop_lag_seconds").child()
        self._providers = frozenset(catalog.providers)
        self._deployments = {entry.id: _series(registry, entry) for entry in catalog.deployments.values()}
        self._figures = [_figures(registry, entry) for entry in catalog.deployments.values()]
        self._open = {name: DeploymentSeries(registry, name, OTHER, OTHER) for name in open_providers}
        self._other = DeploymentSeries(registry, OTHER, OTHER, OTHER)
        self._state_dropped = registry.scalar("gateway_state_dropped_total").child()
        self._state_dropped_of: Callable[[], int] | None = None
        self._make_children()

    def _make_children(self) -> None:
        """To ask for a series is to make it."""
        for target in self._catalog.targets.values():
            self._make_request_children(target.name)
            for provider, reason in _expected_decisions(target):
                self._decisions[target.name, NO_TIER, provider, reason]
        self._make_request_children(OTHER)
        for series in self._deployments.values():
            series.show_state("unmeasured")
        self._registry.scalar("gateway_build_info").child(__version__, platform.python_version()).set(1)

    def _make_request_children(self, name: str) -> None:
        self._in_flight[(name,)]
        self._duration[name, NO_TIER]
        self._client_ttft[name, NO_TIER]
        for outcome in OUTCOMES:
            self._requests[name, NO_TIER, outcome]

    def request_began(self, model: str) -> None:
        """A request for this public name is being served."""
        self._in_flight[(self._public(model),)].inc()

    def request_ended(self, model: str) -> None:
        self._in_flight[(self._public(model),)].dec()

    def attempt_began(self, deployment_id: str) -> int:
        """An attempt at this deployment is under way; returns how many there are now."""
        gauge = self._of(deployment_id).in_flight
        gauge.inc()
        return int(gauge.value)

    def attempt_ended(self, deployment_id: str) -> None:
        self._of(deployment_id).in_flight.dec()

    def under_way(self, deployment_id: str) -> int | None:
        """Attempts under way at this deployment; None where they are counted by provider only."""
        series = self._deployments.get(deployment_id)
        return None if series is None else int(series.in_flight.value)

    def transition(self, deployment_id: str, to: str, reason: str) -> None:
        """A deployment changed its state."""
        self._of(deployment_id).transition(to, reason)
        if deployment_id in self._deployments:
            self._deployments[deployment_id].show_state(to)

    def watch_states(self, state_of: Callable[[Deployment], str]) -> None:
        """Asks for every deployment's state at each scrape: a cooldown ends without anybody being told."""
        self._state_of = state_of

    def watch_state_dropped(self, dropped: Callable[[], int]) -> None:
        """Asks at each scrape how much the state folder has missed so far."""
        self._state_dropped_of = dropped

    def watch_speeds(self, book: SpeedStatistics, clock: Clock = monotonic) -> None:
        """Shows every deployment's statistics, read anew at a scrape that is five seconds after the last reading."""
        self._book = book
        self._clock = clock
        self._figures_until = 0.0

    @property
    def series(self) -> int:
        """Time series that a scrape has before the first request, and with every figure known."""
        return self._registry.series

    def loop_lag(self, seconds: float) -> None:
        """How late the event loop was."""
        self._loop_lag.observe(seconds)

    def record(self, record: GenerationRecord) -> None:
        """A finished request."""
        model, tier = self._public(record.requested_model), self._tier(record.tier)
        self._requests[model, tier, one_of(record.outcome, OUTCOMES)].inc()
        if record.client.duration_ms is not None:
            self._duration[model, tier].observe(record.client.duration_ms / 1000.0)
        if record.client.ttft_ms is not None:
            self._client_ttft[model, tier].observe(record.client.ttft_ms / 1000.0)
        if record.timing.overhead_ms is not None:
            self._overhead.observe(record.timing.overhead_ms / 1000.0)
        if record.deployment is not None:
            provider = one_of(record.provider, self._providers)
            self._decisions[model, tier, provider, one_of(record.reason, REASONS)].inc()
            self._of(record.deployment).answer(record)
        self._count_attempts(model, record)

    def _count_attempts(self, model: str, record: GenerationRecord) -> None:
        left: AttemptRecord | None = None
        for entry in record.attempts:
            # A second try at the same place is an attempt, but no move.
            if left is not None and entry.kind == "fallback" and entry.deployment != left.deployment:
                self._fallbacks[model, one_of(left.error or left.outcome, TRANSITION_REASONS)].inc()
            self._of(entry.deployment).attempt(entry)
            left = entry

    def render(self) -> bytes:
        """The whole exposition at once."""
        return b"".join(self._pieces())

    async def scrape(self) -> Sequence[bytes]:
        """The whole exposition in pieces, made in slices of about 1 ms between which the event loop goes on."""
        pieces = []
        for piece in self._pieces():
            if piece:
                pieces.append(piece)
            await asyncio.sleep(0)
        return pieces

    def _pieces(self) -> Iterator[bytes]:
        """Pieces that each take about 1 ms to make; one may be empty."""
        for _ in paused_every(SLICE_S, self._refreshed()):
            yield b""
        for text in self._registry.slices():
            yield text.encode()
        yield self._process.render()

    def _refreshed(self) -> Iterator[None]:
        """Brings what is asked for at a scrape up to date, one deployment a step."""
        if self._state_dropped_of is not None:
            self._state_dropped.set(self._state_dropped_of())
        if self._state_of is not None:
            for entry in self._catalog.deployments.values():
                self._deployments[entry.id].show_state(self._state_of(entry))
                yield
        now = self._clock()
        if self._book is not None and now >= self._figures_until:
            self._figures_until = now + FIGURES_FOR_S
            for figures in self._figures:
                figures.refresh(self._book, now)
                yield

    def _public(self, name: str) -> str:
        """The name a request's series carry: an alias counts under the name it stands for."""
        target = self._catalog.targets.get(name)
        return OTHER if target is None else target.name

    def _tier(self, name: str | None) -> str:
        return NO_TIER if name is None else one_of(name, self._tiers)

    def _of(self, deployment_id: str) -> DeploymentSeries:
        known = self._deployments.get(deployment_id)
        if known is None:
            known = self._open.get(deployment_id.partition("/")[0], self._other)
        return known


def _series(registry: Registry, deployment: Deployment) -> DeploymentSeries:
    return DeploymentSeries(registry, deployment.provider.name, deployment.model, deployment.id)


def _figures(registry: Registry, deployment: Deployment) -> DeploymentFigures:
    return DeploymentFigures(registry, deployment.provider.name, deployment.model, deployment.id)


def _expected_decisions(target: Target) -> Iterable[tuple[str, str]]:
    """The usual reasons; exceptional ones come on first use."""
    usual = "only_choice" if len(target.deployments) == 1 else target.strategy
    return sorted({(entry.provider.name, usual) for entry in target.deployments if usual in REASONS})
