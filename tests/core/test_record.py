"""The record as JSON: the interface's names, milliseconds at 0.1, nothing that is not known as 0."""

import json

from gateway.core.record import AttemptRecord, GenerationRecord, Timing, as_json


def record(**fields: object) -> GenerationRecord:
    base = {"id": "g", "created": "now", "surface": "s", "stream": True, "requested_model": "m", "outcome": "ok"}
    return GenerationRecord(**{**base, **fields})  # type: ignore[arg-type]


def test_times_are_rounded_and_the_unknown_is_null() -> None:
    attempt = AttemptRecord("p/m", "p", "m", "primary", "ok", ttft_ms=1.26, cost_usd=0.0000012345)
    shown = as_json(
        record(
            timing=Timing(ttft_ms=12.3456),
            attempts=(attempt,),
            server_clock={"prompt_ms": 3237.4421, "tokens_per_s": 31.4063},
            cost_usd=0.00006249999,
        )
    )
    assert shown["timing"]["ttft_ms"] == 12.3
    assert shown["timing"]["ttfa_ms"] is None
    assert shown["attempts"][0]["ttft_ms"] == 1.3
    assert shown["attempts"][0]["cost_usd"] == 0.000001234
    assert shown["server_clock"] == {"prompt_ms": 3237.4, "tokens_per_s": 31.4}
    assert shown["cost_usd"] == 0.0000625
    json.dumps(shown)


def test_what_is_no_part_of_the_interface_stays_out() -> None:
    assert "gaps_s" not in as_json(record(gaps_s=(0.1, 0.2)))


def test_the_names_are_those_of_the_interface() -> None:
    shown = as_json(record())
    assert set(shown) == {
        "id", "client_request_id", "created", "surface", "stream", "key", "task", "session", "requested_model", "route",
        "model", "deployment", "provider", "upstream_model", "served_model", "served_tier", "tier", "measured_tier",
        "promise", "reason", "outcome", "error", "finish_reason", "terminated", "client", "timing", "tokens", "chars",
        "speed", "server_clock", "stream_events", "dropped_params", "splice", "cost_usd", "cost_wasted_usd", "attempts",
        "feedback",
    }  # fmt: skip
