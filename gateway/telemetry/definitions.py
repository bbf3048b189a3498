"""The table of metrics: name, kind, labels, buckets, and what each one says.

Labels are configured names and small enumerations, never a key, a path, an id of a request or free text.
"""

from dataclasses import dataclass
from typing import Literal

DURATION_S = (0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 600)
TTFT_S = (
    *(0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5),
    *(10, 15, 20, 30, 60, 120),
)
SPEED_TPS = (
    *(2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 100, 120, 150, 200, 250, 300, 400, 600, 800),
    *(1200, 2000, 5000, 20000),
)
CHARS_PER_S = tuple(4 * bound for bound in SPEED_TPS)
GAP_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10)
OVERHEAD_S = (0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)

# One public name, as the caller asked for it.
_MODEL = ("model",)
_REQUEST = ("model", "tier")
# One deployment: `model` is the model it serves.
_DEPLOYMENT = ("provider", "model", "deployment")


@dataclass(frozen=True, slots=True)
class Definition:
    """One row. `bounds` only for histograms."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    bounds: tuple[float, ...] = ()


def _counter(name: str, labels: tuple[str, ...], text: str) -> Definition:
    return Definition(name, "counter", labels, text)


def _gauge(name: str, labels: tuple[str, ...], text: str) -> Definition:
    return Definition(name, "gauge", labels, text)


def _histogram(name: str, labels: tuple[str, ...], bounds: tuple[float, ...], text: str) -> Definition:
    return Definition(name, "histogram", labels, text, bounds)


REQUESTS = (
    _counter("gateway_requests_total", (*_REQUEST, "outcome"), "Finished requests by outcome."),
    _gauge("gateway_requests_in_flight", _MODEL, "Requests that are being served."),
    _histogram(
        "gateway_request_duration_seconds", _REQUEST, DURATION_S, "From a request's arrival to its end, all attempts."
    ),
    _histogram(
        "gateway_client_ttft_seconds", _REQUEST, TTFT_S, "From a request's arrival to the client's first token."
    ),
    _histogram("gateway_overhead_seconds", (), OVERHEAD_S, "Time inside the gateway that waited for nobody."),
    _counter(
        "gateway_route_decisions_total",
        (*_REQUEST, "provider", "reason"),
        "Requests by the provider that answered and why it stood where it stood in the plan.",
    ),
    _counter("gateway_fallbacks_total", (*_MODEL, "reason"), "Moves to another deployment, by what the one left did."),
)
ATTEMPTS = (
    _counter("gateway_attempts_total", (*_DEPLOYMENT, "kind", "outcome"), "Attempts by `ok` or their error code."),
    _histogram("gateway_connect_seconds", ("provider",), OVERHEAD_S, "New upstream connections, TLS included."),
    _histogram("gateway_pool_wait_seconds", ("provider",), OVERHEAD_S, "Waits for a free upstream connection slot."),
)
SPEED = (
    _histogram("gateway_ttft_seconds", (*_DEPLOYMENT, "prompt_size"), TTFT_S, "Request sent to first token."),
    _histogram("gateway_ttfa_seconds", _DEPLOYMENT, TTFT_S, "Request sent to first token that is no reasoning."),
    _histogram(
        "gateway_output_tokens_per_second", _DEPLOYMENT, SPEED_TPS, "Output speed of streams whose reading is sound."
    ),
    _counter(
        "gateway_server_clock_samples_total", _DEPLOYMENT, "Speeds among them that are by the provider's own clock."
    ),
    _histogram("gateway_output_chars_per_second", _DEPLOYMENT, CHARS_PER_S, "The same in characters."),
    _histogram("gateway_time_per_output_token_seconds", _DEPLOYMENT, GAP_S, "The inverse of the output speed."),
    _histogram("gateway_gap_seconds", _DEPLOYMENT, GAP_S, "Gaps between reads that bear tokens."),
    _histogram("gateway_max_gap_seconds", _DEPLOYMENT, GAP_S, "The longest gap of each stream."),
    _counter("gateway_stalls_total", _DEPLOYMENT, "Gaps of one second and more."),
    _counter("gateway_speed_samples_total", (*_DEPLOYMENT, "quality"), "Streams by what their speed reading is worth."),
    _counter("gateway_tokens_total", (*_DEPLOYMENT, "type", "source"), "Tokens; output includes reasoning."),
    _counter("gateway_cost_usd_total", _DEPLOYMENT, "Cost in US dollars where prices and usage are known."),
)
STATE = (
    _gauge(
        "gateway_deployment_state",
        _DEPLOYMENT,
        "0 ok, 1 unmeasured, 2 sagging, 3 probing, 4 cooling, 5 disabled.",
    ),
    _gauge("gateway_deployment_in_flight", _DEPLOYMENT, "Attempts under way."),
    _counter("gateway_deployment_transitions_total", (*_DEPLOYMENT, "to", "reason"), "Changes of state."),
)
# Figures of the statistics as they stand at the scrape: no line where there is nothing to say.
FIGURES = (
    _gauge(
        "gateway_deployment_speed_tokens_per_second",
        (*_DEPLOYMENT, "stat"),
        "Output speed: quantiles of five minutes, the estimate's bounds, and what is usual.",
    ),
    _gauge(
        "gateway_deployment_ttft_seconds",
        (*_DEPLOYMENT, "stat"),
        "Time to first token: quantiles of five minutes, and what a prompt of 1,000 tokens should take.",
    ),
    _gauge("gateway_deployment_effective_samples", _DEPLOYMENT, "Speed samples behind the estimate, by weight."),
    _gauge("gateway_server_clock_decode_ratio", _DEPLOYMENT, "Our output speed over the provider's own figure."),
    _gauge(
        "gateway_server_clock_ttft_difference_seconds",
        _DEPLOYMENT,
        "Our time to first token less the provider's own: the way there and back.",
    ),
    _gauge("gateway_token_estimate_ratio", _DEPLOYMENT, "Tokens estimated from characters over tokens billed."),
)
PROCESS = (
    _histogram("gateway_event_loop_lag_seconds", (), OVERHEAD_S, "How late the event loop woke a timer."),
    _counter("gateway_state_dropped_total", (), "Records and hourly figures that were dropped instead of stored."),
    _gauge("gateway_build_info", ("version", "python"), "Always 1."),
)

DEFINITIONS: tuple[Definition, ...] = (*REQUESTS, *ATTEMPTS, *SPEED, *STATE, *FIGURES, *PROCESS)
