"""The statistics of one deployment as people and APIs read them: frozen figures, None where there is nothing to say.

Percentiles are of the sample: `p10` of a speed is the floor that 90 % of requests reach.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

WINDOWS: Mapping[str, float] = {"5m": 300.0, "1h": 3600.0, "24h": 86_400.0, "7d": 604_800.0}
PROMPT_SIZES = ("2k", "8k", "32k", "128k", "more")


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Within 2 % of the exact ones. `count` is the number of values behind them.

    `p1` and `p25` are there for those who read a speed's percentiles the other way round (what 99 % reach).
    """

    count: int = 0
    p1: float | None = None
    p10: float | None = None
    p25: float | None = None
    p50: float | None = None
    p75: float | None = None
    p90: float | None = None
    p99: float | None = None


NOTHING = Quantiles()


@dataclass(frozen=True, slots=True)
class WindowReport:
    """One window. `requests` are attempts that ended with a verdict; `samples` the speed samples among them.

    `uptime` is success / (success + provider errors), 429s apart in `rate_limited`; None under 10 requests.
    `consistency` is the floor of output_tps over its median. `cost_usd` None: no price is known.
    `ttft_ms` counts waits that were given up as the lower bounds they are; `server_samples` are speed samples by the
    provider's own clock (counted in `samples` too).
    """

    requests: int = 0
    samples: int = 0
    server_samples: int = 0
    errors: int = 0
    rate_limited: int = 0
    uptime: float | None = None
    consistency: float | None = None
    ttft_ms: Quantiles = NOTHING
    ttfa_ms: Quantiles = NOTHING
    output_tps: Quantiles = NOTHING
    chars_per_s: Quantiles = NOTHING
    max_gap_ms: Quantiles = NOTHING
    ttft_ms_by_prompt: Mapping[str, Quantiles] = field(default_factory=dict)
    qualities: Mapping[str, int] = field(default_factory=dict)
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class LoadBin:
    """Speed by the deployment's attempts under way when this one began (itself included): `1`, `2-4`, … `17+`."""

    in_flight: str
    output_tps: float | None
    samples: int


@dataclass(frozen=True, slots=True)
class TtftModel:
    """TTFT as a line over uncached prompt tokens, plain answers. `prefill_tps` None: no slope is known."""

    base_ms: float | None = None
    per_1k_tokens_ms: float | None = None
    prefill_tps: float | None = None


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """One deployment. `estimate_ratio`: tokens estimated from characters over tokens billed, decayed; 1 is exact.

    `load` is that of the last hour; `mean_in_flight` that of the samples behind the present estimate.
    `clock_decode_ratio`, `clock_ttft_difference_ms`: our clock against the provider's own, decayed; None without one.
    """

    windows: Mapping[str, WindowReport] = field(default_factory=dict)
    load: tuple[LoadBin, ...] = ()
    mean_in_flight: float | None = None
    ttft_model: TtftModel = TtftModel()
    baseline_tps: float | None = None
    effective_samples: float = 0.0
    chars_per_token: float | None = None
    estimate_ratio: float | None = None
    clock_decode_ratio: float | None = None
    clock_ttft_difference_ms: float | None = None
