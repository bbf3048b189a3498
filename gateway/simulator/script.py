"""The script of a simulated provider: how fast it answers, how it fails, and when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.simulator.faults import Fault
from gateway.simulator.units import Amount, Count, Port, Positive, Rate, Seconds, Share


@dataclass(frozen=True, slots=True)
class Ttft:
    """Time to first token: lognormal about `median` seconds, plus a part that grows with the prompt."""

    median: Seconds
    sigma: Amount = 0.0
    per_1k_prompt_tokens: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """Speed is divided by 1 + streams / k, where streams counts every answer in progress, this one too."""

    k: Rate


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Tokens of thought before the answer; they count as output.

    Not `streamed`: the time passes in silence, after the role chunk. `seconds` None: at the script's speed.
    """

    tokens: Count
    streamed: bool = True
    seconds: Seconds | None = None
    field: Literal["reasoning_content", "reasoning"] = "reasoning_content"


@dataclass(frozen=True, slots=True)
class Window:
    """`set_` applies from `at` seconds after the start for `for_` seconds (None: for good), again `every` so many."""

    at: Seconds
    set_: Mapping[str, Any]
    for_: Seconds | None = None
    every: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Everything a simulated provider does. Times in seconds, speeds in tokens per second.

    `models` empty: any. `head_at`: the share of the TTFT after which the head and the role chunk leave.
    `outage`: `refuse` closes the port, `reset` answers every connection with RST; both end what is open.
    """

    name: str = "sim"
    port: Port = 0
    models: tuple[str, ...] = ()
    api_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    ttft: Seconds | Ttft = 0.1
    head_at: Share = 0.9
    tps: Rate = 100.0
    tokens_per_chunk: Positive = 1
    jitter: Share = 0.0
    load: Load | None = None
    output_tokens: Count = 64
    reasoning: Reasoning | None = None
    cached_share: Share = 0.0
    text: Literal["ascii", "wide"] = "ascii"
    tool: bool = False
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    schedule: tuple[Window, ...] = ()
    outage: Literal["refuse", "reset"] | None = None


# A request's `sim` may change how it is answered, a schedule also who is let in; neither what the provider is.
REQUEST_KEYS = frozenset(
    {"ttft", "head_at", "tps", "tokens_per_chunk", "jitter", "load", "output_tokens", "reasoning"}
    | {"cached_share", "text", "tool", "headers", "faults"}
)
SCHEDULE_KEYS = REQUEST_KEYS | {"models", "api_key", "outage"}
LIVE_KEYS = SCHEDULE_KEYS | {"schedule", "seed"}
