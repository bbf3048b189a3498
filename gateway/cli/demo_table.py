"""The demo's table: what each provider is like, and how the requests fared."""

from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Mapping
from math import exp

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.app import Gateway
from gateway.core.clock import monotonic
from gateway.core.record import GenerationRecord
from gateway.core.types import Deployment, Health

_COLOURS = {"ok": "green", "unmeasured": "dim", "sagging": "yellow", "probing": "cyan", "cooling": "red"}


class Tally:
    """A `Listener` that counts: requests by outcome, attempts by deployment, and what was moved on from."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.moved_on = 0
        self.broken_before_token = 0

    def record(self, record: GenerationRecord) -> None:
        if not record.attempts:
            return  # refused, as while the demo ends: no provider was asked
        self.outcomes[record.outcome] += 1
        self.moved_on += len(record.attempts) > 1 and record.outcome == "ok"
        self.broken_before_token += record.outcome == "error" and record.client.ttft_ms is None
        for attempt in record.attempts:
            (self.answered if attempt.outcome == "ok" else self.failed)[attempt.deployment] += 1


class DemoTable:
    """Renders the fleet as the gateway sees it right now. `processes` are the providers', by name."""

    def __init__(self, gateway: Gateway, tally: Tally, processes: Mapping[str, Process]) -> None:
        self._gateway = gateway
        self._tally = tally
        self._processes = processes

    def render(self) -> RenderableType:
        """The table and the line below it."""
        now = monotonic()
        table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name in ("provider", "state", "TTFT p50", "tok/s p50", "tok/s now", "answered", "failed", "pid"):
            table.add_column(name, justify="left" if name in ("provider", "state") else "right", no_wrap=True)
        for deployment in self._gateway.settings.catalog.deployments.values():
            table.add_row(*self._row(deployment, now))
        return Group(table, self.summary())

    def _row(self, deployment: Deployment, now: float) -> list[RenderableType]:
        name = deployment.provider.name
        view = self._gateway.book.view(deployment.id, now)
        ttft, speed = view.ttft_ms_p50, view.output_tps_p50
        latest = self._gateway.book.evidence(deployment.id, now).speed
        process = self._processes[name]
        return [
            name,
            _state(self._gateway.health.health(deployment, now), now),
            "–" if ttft is None else f"{ttft:.0f} ms",
            "–" if speed is None else f"{speed:.0f}",
            "–" if latest is None else f"{exp(latest.mean):.0f}",
            str(self._tally.answered[deployment.id]),
            str(self._tally.failed[deployment.id]),
            str(process.pid) if process.returncode is None else "gone",
        ]

    def summary(self) -> Text:
        """How the requests fared, all together."""
        tally = self._tally
        outcomes = tally.outcomes
        broken = sum(outcomes[word] for word in ("error", "truncated")) - tally.broken_before_token
        return Text(
            f"{sum(outcomes.values())} requests: {outcomes['ok']} ok, {tally.moved_on} of them moved on to another "
            f"provider; {tally.broken_before_token} failed before a token, {broken} in mid-stream"
        )


def _state(health: Health, now: float) -> Text:
    words: str = health.state
    if health.until is not None and health.until > now:
        words += f" {health.until - now:.0f} s"
    return Text(words, style=_COLOURS.get(health.state, ""))
