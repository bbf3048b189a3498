"""What is known of each deployment's speed: fed with every record, read by routing, the meter, tables and APIs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log

from gateway.core.ports import Clock, Hour, StreamMeter
from gateway.core.record import GenerationRecord
from gateway.core.speed import WINDOWS, SpeedReport, TtftModel, WindowReport
from gateway.core.types import SpeedEvidence, SpeedView
from gateway.metering import quantities as q
from gateway.metering.decay import Sample
from gateway.metering.figures import load_bins, together, window_report
from gateway.metering.page import CLASSES, HOUR_S, Page, book_answer, book_attempt, book_speed
from gateway.metering.payload import hour_payload, learnt_payload, read_hour, read_learnt
from gateway.metering.running import Watched
from gateway.metering.sketch import quantiles

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
        self._noted: dict[str, int] = {}

    # --- what it hears ---

    def record(self, record: GenerationRecord) -> None:
        """Books every attempt under its deployment, and the answer's measurement under what was served."""
        now = self._clock()
        for attempt in record.attempts:
            page = self._page(attempt.deployment)
            page.last_call = now
            book_attempt(page, attempt, record, now)
        if record.deployment is None:
            return
        page = self._page(record.deployment)
        page.last_call = now
        served = self._booked_under(record)
        book_answer(page, record, now, served_here=served == record.deployment)
        if served is not None and served != record.deployment and not record.splice:
            book_speed(self._page(served), record, now)

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
        """Asks every running stream how far it is. Returns the deployments that have any."""
        for running in self._running.values():
            for watched in running.values():
                watched.look(now)
        return list(self._running)

    # --- what routing asks ---

    def evidence(self, deployment_id: str, now: float) -> SpeedEvidence:
        """What sag is judged on: the finished samples, and what the running streams have shown so far."""
        page = self._pages.get(deployment_id)
        if page is None:
            return SpeedEvidence()
        samples, late = self._interim(deployment_id, page)
        return SpeedEvidence(
            speed=page.speed.estimate(now, samples),
            baseline=page.baseline.estimate(now),
            ttft=page.residual.estimate(now, late),
            interim=tuple(value for value, _, _ in samples),
        )

    def _interim(self, deployment_id: str, page: Page) -> tuple[list[Sample], list[Sample]]:
        """Samples of ln tok/s, and of ln (wait / expected) where a wait is already longer than expected."""
        running = self._running.get(deployment_id)
        if not running:
            return [], []
        samples = [watched.sample for watched in running.values() if watched.sample is not None]
        late: list[Sample] = []
        for waited_s, tokens in (watched.bound for watched in running.values() if watched.bound is not None):
            expected = page.expected_s(tokens)
            if expected is not None and waited_s > expected:
                late.append((log(waited_s / expected), 1.0, None))
        return samples, late

    def freeze(self, deployment_id: str, frozen: bool) -> None:
        """While frozen neither the baseline nor the expected TTFT learns: a sag must not become the new normal."""
        if frozen or deployment_id in self._pages:
            self._page(deployment_id).frozen = frozen

    def predicted_ttft_s(self, deployment_id: str, uncached_tokens: int) -> float | None:
        """Expected seconds to the first token of a plain answer; None before three were seen."""
        page = self._pages.get(deployment_id)
        line = page.lines.get("plain") if page else None
        return line.predict(uncached_tokens) if line else None

    # --- what the meter asks ---

    def chars_per_token(self, deployment_id: str) -> float:
        """Learnt from that deployment's own past usage; 4 before there was any."""
        return self._pages.get(deployment_id, _EMPTY).chars_per_token()

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
        sheet = page.window(_VIEW_S, now)
        speeds = together(sheet, q.SPEED, len(q.LOADS) + 1)
        (speed,) = quantiles(speeds, (0.5,))
        waits, bounds = (together(sheet, first, q.UNKNOWN_SIZE + 1) for first in (q.TTFT, q.BOUND))
        ttft_p50, ttft_p95 = quantiles(waits, (0.5, 0.95), bounds)
        return SpeedView(samples=sum(speeds.values()), output_tps_p50=speed, ttft_ms_p50=ttft_p50, ttft_ms_p95=ttft_p95)

    def window(self, deployment_id: str, seconds: float, now: float) -> WindowReport:
        """The last so many seconds, to one slot."""
        page = self._pages.get(deployment_id)
        return window_report(page.window(seconds, now)) if page is not None else WindowReport()

    def report(self, deployment_id: str, now: float, windows: Mapping[str, float] = WINDOWS) -> SpeedReport:
        """Everything that is known."""
        page = self._pages.get(deployment_id, _EMPTY)
        baseline = page.baseline.estimate(now)
        speed = page.speed.estimate(now)
        return SpeedReport(
            windows={name: window_report(page.window(seconds, now)) for name, seconds in windows.items()},
            load=load_bins(page.window(_LOAD_S, now)),
            ttft_model=_ttft_model(page),
            baseline_tps=exp(baseline.mean) if baseline else None,
            effective_samples=speed.count if speed else 0.0,
            chars_per_token=page.ratio.known,
            estimate_ratio=page.estimates.known,
            clock_decode_ratio=page.clock_ratio.known,
            clock_ttft_difference_ms=page.clock_ttft.known,
        )

    # --- what outlives the process ---

    def changed_hours(self, wall_offset_s: float, now: float) -> Sequence[Hour]:
        """The hours that changed since this was last asked, each whole."""
        jumped = round((wall_offset_s - self._offset_s) / HOUR_S)
        hours: list[Hour] = []
        for deployment_id, page in self._pages.items():
            page.sheets(now)
            since = self._noted.get(deployment_id, 0)
            for number, sheet in page.own_hours.since(since):
                hours.append(Hour(deployment_id, number + jumped, hour_payload(sheet)))
                self._noted[deployment_id] = number
        return hours

    def learnt(self, wall_offset_s: float, now: float) -> Mapping[str, bytes]:
        """What was learnt of each deployment: baseline, TTFT lines, ratios."""
        return {name: learnt_payload(page, wall_offset_s) for name, page in self._pages.items()}

    def restore(self, hours: Iterable[Hour], learnt: Mapping[str, bytes], wall_offset_s: float, now: float) -> None:
        """Takes up what an earlier process left; what cannot be read is left out."""
        for deployment_id, payload in learnt.items():
            read_learnt(self._page(deployment_id), payload, wall_offset_s, now)
        for hour in hours:
            sheet = read_hour(hour.payload)
            if sheet is not None:
                self._page(hour.deployment_id).take_hour(hour.hour, sheet, now)

    def _page(self, deployment_id: str) -> Page:
        page = self._pages.pop(deployment_id, None)
        if page is None:
            page = Page(self._offset_s)
            if len(self._pages) >= self._capacity:
                oldest = next(iter(self._pages))
                del self._pages[oldest]
                self._noted.pop(oldest, None)
        self._pages[deployment_id] = page
        return page


_EMPTY = Page()


def _ttft_model(page: Page) -> TtftModel:
    line = page.lines.get(CLASSES[0])
    found = line.coefficients() if line is not None else None
    if found is None:
        return TtftModel()
    base_s, slope_s = found
    return TtftModel(
        base_ms=base_s * 1000,
        per_1k_tokens_ms=slope_s * 1e6 if slope_s > 0 else None,
        prefill_tps=1 / slope_s if slope_s > 0 else None,
    )
