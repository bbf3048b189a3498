"""What is known of each deployment's speed: fed with every record, read by routing, the meter, tables and APIs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import exp

from gateway.core.ports import Clock, Hour, StreamMeter
from gateway.core.record import GenerationRecord
from gateway.core.speed import WINDOWS, SpeedReport, TtftModel, WindowReport
from gateway.core.types import SpeedEvidence, SpeedView
from gateway.metering import quantities as q
from gateway.metering.booking import book_answer, book_attempt, book_quality
from gateway.metering.figures import together, window_report
from gateway.metering.meter import CHARS_PER_TOKEN
from gateway.metering.packing import Sheet
from gateway.metering.page import PLAIN, Page
from gateway.metering.payload import hour_payload, learnt_payload, read_hour, read_learnt
from gateway.metering.running import Watched, interim
from gateway.metering.sketch import quantiles
from gateway.metering.slots import HOUR_S, merge_sheets

COLD_AFTER_S = 300.0
_VIEW_S = 300.0
_LOAD_S = 3600.0

# Under which deployment what was served is booked; None: under none. Asked only for records with a served name or tier.
BookedUnder = Callable[[GenerationRecord], str | None]


def _as_asked(record: GenerationRecord) -> str | None:
    return record.deployment


class SpeedBook:
    """A `Listener`, the `SpeedEvidenceSource`, `SpeedReports`, `RunningStreams` and `Remembered`.

    All calls are local and quick. `clock` gives monotonic seconds; `offset_s` makes them wall-clock seconds, so that
    hours begin with the hour. Keeps at most `capacity` deployments; the one heard of longest ago makes room.
    """

    def __init__(
        self, clock: Clock, capacity: int = 2000, offset_s: float = 0.0, booked_under: BookedUnder = _as_asked
    ) -> None:
        self._clock = clock
        self._capacity = capacity
        self._offset_s = offset_s
        self._booked_under = booked_under
        self._pages: dict[str, Page] = {}
        self._running: dict[str, dict[int, Watched]] = {}

    # --- what it hears ---

    def record(self, record: GenerationRecord) -> None:
        """Books every attempt under its deployment, and the answer's measurement under what was served."""
        now = self._clock()
        last = len(record.attempts) - 1
        for index, attempt in enumerate(record.attempts):
            page = self._page(attempt.deployment)
            page.last_call = now
            answered = index == last and attempt.deployment == record.deployment and record.timing.ttft_ms is not None
            book_attempt(page, attempt, record, now, answered=answered)
        if record.deployment is None:
            return
        page = self._page(record.deployment)
        page.last_call = now
        book_quality(page, record, now)
        served = self._booked_under(record)
        if served is not None:
            book_answer(self._page(served), record, now)

    def began(self, deployment_id: str, meter: StreamMeter) -> None:
        """A stream's request is out."""
        self._running.setdefault(deployment_id, {})[id(meter)] = Watched(meter)

    def ended(self, deployment_id: str, meter: StreamMeter) -> None:
        """It ended: its interim sample makes room for the final one, which its record brings."""
        running = self._running.get(deployment_id)
        if running is not None:
            running.pop(id(meter), None)
            if not running:
                del self._running[deployment_id]

    def look(self, now: float) -> list[str]:
        """Asks every running stream how far it is. Returns the deployments of which that is news."""
        news: list[str] = []
        for deployment_id, running in self._running.items():
            told = [watched.look(now) for watched in running.values()]
            if any(told):
                news.append(deployment_id)
        return news

    # --- what routing asks ---

    def evidence(self, deployment_id: str, now: float) -> SpeedEvidence:
        """What sag is judged on: the finished samples, and what the running streams have shown so far."""
        page = self._pages.get(deployment_id)
        if page is None:
            return SpeedEvidence()
        baseline = page.baseline.estimate(now)
        running = self._running.get(deployment_id)
        samples, late = interim(page, baseline, running.values()) if running else ((), ())
        return SpeedEvidence(
            speed=page.speed.estimate(now, samples),
            baseline=baseline,
            ttft=page.residual.estimate(now, late),
            interim=tuple(value for value, _, _ in samples),
        )

    def freeze(self, deployment_id: str, frozen: bool) -> None:
        """While frozen neither the baseline nor the expected TTFT learns: a sag must not become the new normal."""
        if frozen or deployment_id in self._pages:
            self._page(deployment_id).frozen = frozen

    def predicted_ttft_s(self, deployment_id: str, uncached_tokens: int) -> float | None:
        """Expected seconds to the first token of a plain answer; None before three were seen."""
        page = self._pages.get(deployment_id)
        line = page.lines.get(PLAIN) if page else None
        return line.predict(uncached_tokens) if line else None

    # --- what the meter asks ---

    def chars_per_token(self, deployment_id: str) -> float:
        """Learnt from that deployment's own past usage; 4 before there was any."""
        page = self._pages.get(deployment_id)
        return page.chars_per_token() if page is not None else CHARS_PER_TOKEN

    def cold(self, deployment_id: str, now: float) -> bool:
        """No call of it ended within five minutes."""
        page = self._pages.get(deployment_id)
        return page is None or page.last_call is None or now - page.last_call > COLD_AFTER_S

    # --- what people ask ---

    def view(self, deployment_id: str, now: float) -> SpeedView:
        """Quantiles of the last five minutes."""
        page = self._pages.get(deployment_id)
        if page is None:
            return SpeedView()
        sheet = page.shelf.window(_VIEW_S, now + self._offset_s)
        speeds = together(sheet, q.SPEED, len(q.LOADS) + 1)
        (speed,) = quantiles(speeds, (0.5,))
        waits, bounds = (together(sheet, first, q.UNKNOWN_SIZE + 1) for first in (q.TTFT, q.BOUND))
        ttft_p50, ttft_p95 = quantiles(waits, (0.5, 0.95), bounds)
        return SpeedView(samples=sum(speeds.values()), output_tps_p50=speed, ttft_ms_p50=ttft_p50, ttft_ms_p95=ttft_p95)

    def window(self, deployment_id: str, seconds: float, now: float) -> WindowReport:
        """The last so many seconds, to one slot."""
        page = self._pages.get(deployment_id)
        if page is None:
            return WindowReport()
        if seconds in WINDOWS.values():
            return page.told(seconds, now).report
        return window_report(page.shelf.window(seconds, now + self._offset_s))

    def report(self, deployment_id: str, now: float, windows: Mapping[str, float] = WINDOWS) -> SpeedReport:
        """Everything that is known. The load is that of the hour, and told with it alone."""
        page = self._pages.get(deployment_id)
        if page is None:
            return SpeedReport(windows={name: WindowReport() for name in windows})
        told = {name: page.told(seconds, now) for name, seconds in windows.items()}
        baseline, speed = page.baseline.estimate(now), page.speed.estimate(now)
        return SpeedReport(
            windows={name: window.report for name, window in told.items()},
            load=next((told[name].load for name, seconds in windows.items() if seconds == _LOAD_S), ()),
            mean_in_flight=page.speed.mean_load(now),
            ttft_model=_ttft_model(page),
            baseline_tps=exp(baseline.mean) if baseline else None,
            effective_samples=speed.count if speed else 0.0,
            chars_per_token=page.ratio.known,
            estimate_ratio=page.estimates.known,
            clock_decode_ratio=page.clock_ratio.known,
            clock_ttft_difference_ms=page.clock_ttft.known,
        )

    # --- what outlives the process ---

    def changed_hours(self, wall_offset_s: float, now: float) -> Iterator[Hour]:
        """The hours that changed since this was last asked, each whole, made one by one as they are asked for."""
        jumped = round((wall_offset_s - self._offset_s) / HOUR_S)
        for deployment_id in list(self._pages):
            page = self._pages.get(deployment_id)
            for number, counts in page.shelf.changed(now + self._offset_s) if page is not None else ():
                yield Hour(deployment_id, number + jumped, hour_payload(counts))

    def learnt(self, wall_offset_s: float, now: float) -> Mapping[str, bytes]:
        """What was learnt of each deployment: baseline, TTFT lines, ratios."""
        return {name: learnt_payload(page, wall_offset_s) for name, page in self._pages.items()}

    def restore(self, hours: Iterable[Hour], learnt: Mapping[str, bytes], wall_offset_s: float, now: float) -> None:
        """Takes up what an earlier process left; what cannot be read is left out."""
        counted: dict[str, dict[int, Sheet]] = {}
        for hour in hours:
            sheet = read_hour(hour.payload)
            if sheet is not None:
                merge_sheets(counted.setdefault(hour.deployment_id, {}).setdefault(hour.hour, {}), sheet)
        for deployment_id in {**counted, **learnt}:
            past = read_learnt(learnt.get(deployment_id, b""), wall_offset_s, now) or Page(self._offset_s)
            past.shelf.give(counted.pop(deployment_id, {}), now + self._offset_s)
            self._page(deployment_id).merge(past)

    def _page(self, deployment_id: str) -> Page:
        page = self._pages.pop(deployment_id, None)
        if page is None:
            page = Page(self._offset_s)
            if len(self._pages) >= self._capacity:
                oldest = next(iter(self._pages))
                del self._pages[oldest]
        self._pages[deployment_id] = page
        return page


def _ttft_model(page: Page) -> TtftModel:
    line = page.lines.get(PLAIN)
    found = line.coefficients() if line is not None else None
    if found is None:
        return TtftModel()
    base_s, slope_s = found
    return TtftModel(
        base_ms=base_s * 1000,
        per_1k_tokens_ms=slope_s * 1e6 if slope_s > 0 else None,
        prefill_tps=1 / slope_s if slope_s > 0 else None,
    )
