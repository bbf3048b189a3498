"""Finished requests to feed a book with."""

from typing import Any

from hypothesis import strategies as st

from gateway.core.record import AttemptRecord, Chars, GenerationRecord, Speed, Timing, Tokens


def attempt(outcome: str = "ok", error: str | None = None, deployment: str = "p/m", **fields: Any) -> AttemptRecord:
    return AttemptRecord(
        deployment, deployment.split("/", maxsplit=1)[0], "m", "primary", outcome, error=error, **fields
    )


def answered(
    tps: float | None = 100.0,
    ttft_ms: float | None = 300.0,
    *,
    tokens: tuple[int, int, int] = (1000, 0, 100),
    chars: int = 400,
    cost_usd: float | None = None,
    deployment: str = "p/m",
    **fields: Any,
) -> GenerationRecord:
    """A stream that ended well. `tokens`: input, cached, output. Further fields are of Speed and of the record."""
    prompt, cached, output = tokens
    speed = {
        "quality": "ok",
        "source": "client" if tps else None,
        "weight": 1.0 if tps else None,
        "chars_per_s": tps * 4 if tps else None,
    }
    record = {name: fields.pop(name) for name in list(fields) if name in GenerationRecord.__dataclass_fields__}
    return GenerationRecord(
        **{
            "id": "r",
            "created": "2026-01-01T00:00:00.000Z",
            "surface": "chat.completions",
            "stream": True,
            "requested_model": "m",
            "outcome": "ok",
            "deployment": deployment,
            "provider": deployment.split("/", maxsplit=1)[0],
            "upstream_model": "up",
            "timing": Timing(ttft_ms=ttft_ms, ttfa_ms=ttft_ms, max_gap_ms=20.0),
            "tokens": Tokens(input=prompt, cached=cached, output=output, source="usage"),
            "chars": Chars(content=chars),
            "speed": Speed(output_tps=tps, **{**speed, **fields}),
            "attempts": (attempt(deployment=deployment, ttft_ms=ttft_ms, pool_wait_ms=0.0, cost_usd=cost_usd),),
            "cost_usd": cost_usd,
            **record,
        }
    )


def unanswered(outcome: str, error: str | None, waited_ms: float | None = None, **record: Any) -> GenerationRecord:
    """A stream that ended before a token came. `waited_ms` None: it was never sent."""
    one = attempt(outcome, error, duration_ms=waited_ms, pool_wait_ms=None if waited_ms is None else 0.0)
    fields = {"outcome": "error" if outcome == "failed" else outcome, "error": error, "attempts": (one,), **record}
    return answered(None, None, quality="error", timing=Timing(), tokens=(1000, 0, 0), chars=0, **fields)


RECORDS = st.one_of(
    st.builds(
        answered,
        st.floats(1, 5000),
        st.floats(5, 60_000),
        tokens=st.tuples(st.integers(0, 300_000), st.integers(0, 50_000), st.integers(0, 5000)),
        chars=st.integers(0, 20_000),
        cost_usd=st.none() | st.floats(0, 1),
        in_flight=st.none() | st.integers(1, 40),
        quality=st.sampled_from(("ok", "short", "burst", "hidden_reasoning", "whole_tool", "client_blocked")),
        weight=st.floats(0.01, 1),
    ),
    st.builds(
        unanswered,
        st.sampled_from(("failed", "cancelled")),
        st.sampled_from(("timeout_ttft", "rate_limited", "server_error", "bad_request")),
        st.none() | st.floats(1, 60_000),
    ),
)
