"""The fault catalogue over real sockets: what fails before the first token is left, what fails after it is told."""

import asyncio

import pytest

from gateway.core.types import Credential
from gateway.simulator import Script
from gateway.simulator.faults import (
    Buffered,
    Comments,
    Cut,
    Empty,
    ErrorEvent,
    ErrorThenDone,
    Fault,
    Html502,
    HugeEvent,
    InvalidUtf8,
    JsonError200,
    Malformed,
    NoDone,
    NoUsage,
    Reset,
    Silence,
    Split,
    Stall,
    Status,
)
from tests.dispatch.answered import QUICK, events_of, text_of
from tests.live import fast, live, run

BEFORE_THE_FIRST_TOKEN: list[tuple[Fault, str, int | None]] = [
    (Status(code=500), "server_error", 500),
    (Status(code=502), "server_error", 502),
    (Status(code=503), "overloaded", 503),
    (Status(code=529), "overloaded", 529),
    (Status(code=408), "server_error", 408),
    (Status(code=429, retry_after=7), "rate_limited", 429),
    (Status(code=429, error_code="insufficient_quota"), "quota", 429),
    (Status(code=401), "auth", 401),
    (Status(code=402), "quota", 402),
    (Status(code=403), "auth", 403),
    (Status(code=404), "not_found", 404),
    (Html502(), "server_error", 502),
    (JsonError200(), "server_error", 200),
    (Reset(when="before_headers"), "cut", None),
    (Reset(when="after_headers"), "cut", 200),
    (Silence(when="before_headers"), "timeout_ttft", None),
    (Silence(when="after_headers"), "timeout_ttft", 200),
    (Comments(every=0.02, for_ever=True), "timeout_ttft", 200),
    (Cut(after_tokens=0), "cut", 200),
    (Cut(after_tokens=0, terminated=True), "cut", 200),
    (Malformed(after_tokens=0), "malformed", 200),
    (InvalidUtf8(after_tokens=0), "malformed", 200),
    (ErrorEvent(after_tokens=0), "server_error", 200),
    (ErrorThenDone(after_tokens=0), "server_error", 200),
    (Empty(finish=False), "empty", 200),
    (Stall(after_tokens=0), "timeout_ttft", 200),
]


@pytest.mark.parametrize(("fault", "code", "status"), BEFORE_THE_FIRST_TOKEN, ids=lambda value: str(value)[:40])
def test_a_failure_before_the_first_token_moves_on_and_leaves_no_trace(
    fault: Fault, code: str, status: int | None
) -> None:
    async def main() -> None:
        async with live(fast(faults=(fault,)), fast(), timeouts=QUICK) as gw:
            response = await gw.post()
            assert response.status_code == 200
            assert response.text.endswith("data: [DONE]\n\n")
            events = events_of(response.text)
            assert len({event["id"] for event in events}) == 1
            assert sum("role" in event["choices"][0]["delta"] for event in events) == 1
            assert len(text_of(response.text)) == 100
            assert response.headers["x-gateway-attempts"] == "2"
            assert response.headers["x-gateway-deployment"] == "p1/m"
            record = await gw.record(response)
            first, second = record.attempts
            assert (first.outcome, first.error, first.status) == ("failed", code, status)
            assert (second.outcome, second.kind) == ("ok", "fallback")
            assert (record.outcome, record.error, record.deployment) == ("ok", None, "p1/m")
            assert "retry" in record.speed.marks

    run(main())


@pytest.mark.parametrize(
    "fault",
    [Status(code=500), Status(code=429), Reset(), Html502(), JsonError200(), Cut(after_tokens=0)],
    ids=lambda value: type(value).__name__,
)
def test_a_plain_answer_falls_back_too(fault: Fault) -> None:
    async def main() -> None:
        async with live(fast(faults=(fault,)), fast(), timeouts=QUICK) as gw:
            response = await gw.post(stream=False)
            assert response.status_code == 200
            assert response.json()["usage"]["completion_tokens"] == 20
            record = await gw.record(response)
            assert [attempt.outcome for attempt in record.attempts] == ["failed", "ok"]
            assert (record.timing.ttft_ms, record.speed.output_tps) == (None, None)
            assert (record.tokens.output, record.tokens.source) == (20, "usage")

    run(main())


AFTER_THE_FIRST_TOKEN: list[tuple[Fault, str, str]] = [
    (Cut(after_tokens=8), "truncated", "cut"),
    (Cut(after_tokens=8, terminated=True), "truncated", "cut"),
    (Reset(when="after_headers", after_tokens=8), "truncated", "cut"),
    (Stall(after_tokens=8), "error", "timeout_idle"),
    (ErrorEvent(after_tokens=8), "error", "server_error"),
    (ErrorThenDone(after_tokens=8), "error", "server_error"),
]


@pytest.mark.parametrize(("fault", "outcome", "code"), AFTER_THE_FIRST_TOKEN, ids=lambda value: str(value)[:40])
def test_a_failure_after_the_first_token_is_told_in_band_without_a_false_end(
    fault: Fault, outcome: str, code: str
) -> None:
    async def main() -> None:
        async with live(fast(tps=400, faults=(fault,)), fast(), timeouts=QUICK) as gw:
            response = await gw.post()
            assert response.status_code == 200
            assert "[DONE]" not in response.text
            events = events_of(response.text)
            assert events[-1]["error"]["code"] == code
            assert sum("error" in event for event in events) == 1
            assert len(text_of(response.text)) == 40
            record = await gw.record(response)
            assert (record.outcome, record.error, len(record.attempts)) == (outcome, code, 1)
            assert record.attempts[0].outcome == outcome
            assert record.speed.output_tps is None
            assert record.speed.quality == outcome

    run(main())


def test_a_missing_done_after_a_finish_reason_is_a_whole_answer_and_the_client_gets_one() -> None:
    async def main() -> None:
        async with live(fast(faults=(NoDone(),))) as gw:
            response = await gw.post()
            assert response.text.endswith("data: [DONE]\n\n")
            record = await gw.record(response)
            assert (record.outcome, record.terminated) == ("ok", True)

    run(main())


def test_an_empty_answer_with_a_finish_reason_is_an_answer() -> None:
    async def main() -> None:
        async with live(fast(faults=(Empty(finish=True),)), fast()) as gw:
            response = await gw.post()
            assert response.status_code == 200
            assert response.headers["x-gateway-attempts"] == "1"
            assert events_of(response.text)[-1]["choices"][0]["finish_reason"] == "stop"

    run(main())


@pytest.mark.parametrize(("status", "code"), [(400, "bad_request"), (422, "bad_request")])
def test_the_callers_own_mistake_goes_back_with_the_upstreams_words(status: int, code: str) -> None:
    async def main() -> None:
        fault = Status(code=status, message="temperature must be at most 2", error_code="invalid_temperature")
        async with live(fast(faults=(fault,)), fast()) as gw:
            response = await gw.post()
            assert response.status_code == 400
            error = response.json()["error"]
            assert (error["message"], error["code"]) == ("temperature must be at most 2", "invalid_temperature")
            assert gw.sims[1].stats.requests == 0
            assert (await gw.record(response)).error == code

    run(main())


def test_failover_on_makes_a_status_the_providers_own_fault() -> None:
    async def main() -> None:
        wrong = fast(faults=(Status(code=400),))
        async with live(wrong, fast(), provider={"failover_on": frozenset({400})}) as gw:
            response = await gw.post()
            assert (response.status_code, response.headers["x-gateway-attempts"]) == (200, "2")

    run(main())


def test_a_prompt_that_is_too_long_goes_only_to_a_larger_window() -> None:
    async def main() -> None:
        fault = Status(code=400, error_code="context_length_exceeded", message="maximum context length is 8192")
        async with live(fast(faults=(fault,)), fast(), deployment={"context": 8192}) as gw:
            response = await gw.post()
            assert response.status_code == 400
            assert gw.sims[1].stats.requests == 0
            assert (await gw.record(response)).error == "context_length"

    run(main())


def test_all_failed_gives_the_most_useful_status_the_least_wait_and_the_attempts() -> None:
    async def main() -> None:
        scripts = (
            fast(faults=(Status(code=500),)),
            fast(faults=(Status(code=429, retry_after=30),)),
            fast(faults=(Status(code=429, retry_after=1500, retry_after_form="ms"),)),
        )
        async with live(*scripts) as gw:
            for stream in (True, False):
                response = await gw.post(stream=stream)
                assert response.status_code == 429
                assert response.headers["x-gateway-attempts"] == "3"
                attempts = response.json()["error"]["attempts"]
                assert [(entry["provider"], entry["status"]) for entry in attempts] == [
                    ("p0", 500),
                    ("p1", 429),
                    ("p2", 429),
                ]
                assert int(response.headers["retry-after"]) <= 30
                assert (await gw.record(response)).outcome == "error"
                for deployment in ("p0/m", "p1/m", "p2/m"):
                    gw.gateway.health.reset(deployment)

    run(main())


def test_a_quick_transient_failure_of_the_only_deployment_is_tried_once_more() -> None:
    async def main() -> None:
        async with live(fast(faults=(Status(code=500),))) as gw:
            response = await gw.post()
            assert response.status_code == 502
            assert gw.sims[0].stats.requests == 2
            assert len((await gw.record(response)).attempts) == 2

    run(main())


def test_a_broken_frame_in_mid_stream_is_passed_on_and_counted() -> None:
    async def main() -> None:
        async with live(fast(faults=(Malformed(after_tokens=8),))) as gw:
            response = await gw.post()
            record = await gw.record(response)
            assert record.stream_events.bad == 1
            assert record.speed.quality == "corrupt"
            assert response.text.endswith("data: [DONE]\n\n")

    run(main())


def test_bytes_that_are_no_utf8_never_reach_a_client_that_decodes_strictly() -> None:
    async def main() -> None:
        async with live(fast(faults=(InvalidUtf8(after_tokens=8),))) as gw:
            response = await gw.post()
            response.content.decode("utf-8", "strict")
            record = await gw.record(response)
            assert (record.stream_events.bad, record.outcome) == (1, "ok")

    run(main())


def test_a_ten_megabyte_event_passes_in_bounded_memory() -> None:
    async def main() -> None:
        async with live(fast(faults=(HugeEvent(after_tokens=8, size=10_000_000),))) as gw:
            response = await gw.post()
            assert len(response.content) > 10_000_000
            assert response.text.endswith("data: [DONE]\n\n")
            record = await gw.record(response)
            assert record.outcome == "ok"

    run(main())


def test_a_stream_in_one_write_is_relayed_and_has_no_speed() -> None:
    async def main() -> None:
        async with live(fast(faults=(Buffered(),))) as gw:
            record = await gw.record(await gw.post())
            assert record.speed.output_tps is None
            assert record.speed.quality in ("burst", "short")

    run(main())


def test_odd_splits_change_nothing() -> None:
    async def main() -> None:
        async with live(fast(output_tokens=8, faults=(Split(pieces=7, every=0.0005),))) as gw:
            response = await gw.post()
            assert len(text_of(response.text)) == 40
            assert (await gw.record(response)).tokens.output == 8

    run(main())


def test_without_usage_the_count_is_an_estimate_and_says_so() -> None:
    async def main() -> None:
        async with live(fast(faults=(NoUsage(),))) as gw:
            record = await gw.record(await gw.post())
            assert record.tokens.source == "estimate"
            assert record.speed.output_tps is None

    run(main())


def test_a_dead_provider_costs_no_request() -> None:
    async def main() -> None:
        async with live(fast(), fast()) as gw:
            assert (await gw.post()).headers["x-gateway-deployment"] == "p0/m"
            await gw.sims[0].stop()
            for _ in range(5):
                response = await gw.post()
                assert response.status_code == 200
                assert response.headers["x-gateway-deployment"] == "p1/m"
            await gw.sims[0].start()

    run(main())


def test_fifty_at_once_all_get_their_own_answer() -> None:
    async def main() -> None:
        async with live(Script(ttft=0.01, tps=500, output_tokens=30, jitter=0.3), fast()) as gw:
            responses = await asyncio.gather(*(gw.post() for _ in range(50)))
            assert {response.status_code for response in responses} == {200}
            assert len({response.headers["x-request-id"] for response in responses}) == 50
            assert {len(text_of(response.text)) for response in responses} <= {150, 100}
            assert gw.gateway.services.streams.open == 0  # type: ignore[attr-defined]
            assert gw.gateway.services.bodies.held == 0  # type: ignore[attr-defined]

    run(main())


def test_an_upstream_that_quotes_our_key_or_headers_gives_neither_away() -> None:
    async def main() -> None:
        key, token = "sk-of-the-gateway", "token-of-the-team"
        fault = Status(code=400, message=f"cannot read authorization: Bearer {key}, x-team-token: {token}")
        provider = {
            "credential": Credential("fixed", value=f"Bearer {key}"),
            "headers": (("X-Team-Token", token), ("X-Short", "read")),
        }
        async with live(fast(faults=(fault,)), provider=provider) as gw:
            response = await gw.post()
            assert response.json()["error"]["message"] == (
                "cannot read authorization: Bearer [key], x-team-token: [key]"
            )

    run(main())
