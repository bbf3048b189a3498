"""What finished requests and changes of state become in the exposition."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.core.record import GenerationRecord, Speed, Timing, Tokens
from gateway.telemetry.definitions import DEFINITIONS
from gateway.telemetry.metrics import Metrics
from tests.telemetry.books import EVIDENCE, REPORT, Book
from tests.telemetry.catalogs import ATTEMPT, FAILED, RECORD, SECOND, catalog

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def _samples(metrics: Metrics) -> Samples:
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def _value(samples: Samples, name: str, **labels: str) -> float | None:
    """The sample with these labels; the deployment's three may be given as `at`."""
    if (at := labels.pop("at", None)) is not None:
        provider, _, model = at.partition("/")
        labels |= {"provider": provider, "model": model, "deployment": at}
    return samples.get((name, frozenset(labels.items())))


def _after(*records: GenerationRecord) -> Samples:
    metrics = Metrics(catalog())
    for record in records:
        metrics.record(record)
    return _samples(metrics)


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("gateway_requests_total", {"model": "m0", "tier": "none", "outcome": "ok"}, 1),
        ("gateway_request_duration_seconds_sum", {"model": "m0", "tier": "none"}, 0.2924),
        ("gateway_client_ttft_seconds_sum", {"model": "m0", "tier": "none"}, 0.241),
        ("gateway_overhead_seconds_sum", {}, 0.0008),
        (
            "gateway_route_decisions_total",
            {"model": "m0", "tier": "none", "provider": "p0", "reason": "order"},
            1,
        ),
        ("gateway_attempts_total", {"at": "p0/m0", "kind": "primary", "outcome": "ok"}, 1),
        ("gateway_connect_seconds_sum", {"provider": "p0"}, 0.003),
        ("gateway_pool_wait_seconds_count", {"provider": "p0"}, 1),
        ("gateway_ttft_seconds_sum", {"at": "p0/m0", "prompt_size": "8k"}, 0.24),
        ("gateway_ttfa_seconds_sum", {"at": "p0/m0"}, 0.25),
        ("gateway_output_tokens_per_second_sum", {"at": "p0/m0"}, 83.3),
        ("gateway_output_chars_per_second_sum", {"at": "p0/m0"}, 416.7),
        ("gateway_time_per_output_token_seconds_sum", {"at": "p0/m0"}, 0.012),
        ("gateway_gap_seconds_count", {"at": "p0/m0"}, 3),
        ("gateway_max_gap_seconds_sum", {"at": "p0/m0"}, 1.2),
        ("gateway_stalls_total", {"at": "p0/m0"}, 1),
        ("gateway_speed_samples_total", {"at": "p0/m0", "quality": "ok"}, 1),
        ("gateway_tokens_total", {"at": "p0/m0", "type": "input", "source": "usage"}, 3000),
        ("gateway_tokens_total", {"at": "p0/m0", "type": "cached", "source": "usage"}, 1000),
        ("gateway_tokens_total", {"at": "p0/m0", "type": "output", "source": "usage"}, 50),
        ("gateway_tokens_total", {"at": "p0/m0", "type": "reasoning", "source": "usage"}, 0),
        ("gateway_cost_usd_total", {"at": "p0/m0"}, 0.002),
    ],
)
def test_a_finished_request_moves_every_metric_it_has_a_value_for(
    name: str, labels: dict[str, str], value: float
) -> None:
    assert _value(_after(RECORD), name, **labels) == pytest.approx(value)


def test_every_metric_of_the_table_is_rendered_with_its_labels() -> None:
    metrics = Metrics(catalog())
    metrics.watch_speeds(Book({"p0/m0": REPORT}, {"p0/m0": EVIDENCE}))
    metrics.record(replace(RECORD, attempts=(FAILED, SECOND), speed=replace(RECORD.speed, source="server")))
    metrics.transition("p0/m0", "cooling", "overloaded")
    families = {family.name: family for family in text_string_to_metric_families(metrics.render().decode())}
    for row in DEFINITIONS:
        family = families[row.name.removesuffix("_total")]
        assert family.type == row.kind
        assert family.samples, row.name
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(row.labels)


def test_series_of_sound_outcomes_exist_before_the_first_request() -> None:
    samples = _after()
    assert _value(samples, "gateway_requests_total", model="m0", tier="none", outcome="ok") == 0
    assert _value(samples, "gateway_requests_total", model="other", tier="none", outcome="error") == 0
    assert _value(samples, "gateway_requests_in_flight", model="m0") == 0
    assert _value(samples, "gateway_attempts_total", at="p1/m0", kind="fallback", outcome="ok") == 0
    assert _value(samples, "gateway_output_tokens_per_second_count", at="p1/m0") == 0
    assert _value(samples, "gateway_attempts_total", at="p1/m0", kind="primary", outcome="cut") is None


def test_names_nobody_configured_are_other() -> None:
    junk = 'm0"\n} 1'
    samples = _after(replace(RECORD, requested_model=junk, tier=junk, outcome=junk, provider=junk, reason=junk))
    assert _value(samples, "gateway_requests_total", model="other", tier="other", outcome="other") == 1
    wanted = {"model": "other", "tier": "other", "provider": "other", "reason": "other"}
    assert _value(samples, "gateway_route_decisions_total", **wanted) == 1


def test_unknown_words_in_attempts_and_readings_are_other() -> None:
    odd = replace(ATTEMPT, kind="odd", outcome="odd")
    samples = _after(
        replace(RECORD, speed=Speed(quality="odd"), tokens=Tokens(input=1, source="odd"), attempts=(odd,)),
    )
    assert _value(samples, "gateway_attempts_total", at="p0/m0", kind="other", outcome="other") == 1
    assert _value(samples, "gateway_speed_samples_total", at="p0/m0", quality="other") == 1
    assert _value(samples, "gateway_tokens_total", at="p0/m0", type="input", source="other") == 1


def test_an_attempt_at_an_unknown_deployment_is_other() -> None:
    samples = _after(replace(RECORD, attempts=(replace(ATTEMPT, deployment="gone"),)))
    labels = {"provider": "other", "model": "other", "deployment": "other"}
    assert _value(samples, "gateway_attempts_total", kind="primary", outcome="ok", **labels) == 1


def test_a_model_that_is_not_configured_counts_under_its_provider() -> None:
    odd = replace(ATTEMPT, deployment="p1/whatever", provider="p1", model="p1/whatever")
    metrics = Metrics(catalog(), open_providers=("p1",))
    metrics.attempt_began("p1/whatever")
    metrics.transition("p1/whatever", "cooling", "overloaded")
    metrics.record(replace(RECORD, deployment="p1/whatever", provider="p1", model="p1/whatever", attempts=(odd,)))
    samples = _samples(metrics)
    labels = {"provider": "p1", "model": "other", "deployment": "other"}
    assert _value(samples, "gateway_attempts_total", kind="primary", outcome="ok", **labels) == 1
    assert _value(samples, "gateway_ttft_seconds_count", prompt_size="8k", **labels) == 1
    assert _value(samples, "gateway_connect_seconds_count", provider="p1") == 1
    assert _value(samples, "gateway_deployment_in_flight", **labels) == 1
    assert _value(samples, "gateway_deployment_transitions_total", to="cooling", reason="overloaded", **labels) == 1


def test_series_that_many_deployments_share_have_no_state() -> None:
    metrics = Metrics(catalog(), open_providers=("p1",))
    metrics.transition("p1/whatever", "cooling", "overloaded")
    metrics.transition("gone", "cooling", "overloaded")
    shown = {dict(labels)["deployment"] for name, labels in _samples(metrics) if name == "gateway_deployment_state"}
    assert shown == {"p0/m0", "p1/m0"}


def test_every_reason_that_is_documented_is_a_label() -> None:
    text = (Path(__file__).parents[2] / "docs" / "routing.md").read_text(encoding="utf-8")
    rows = text.partition("| reason | means |")[2].partition("\n\n")[0]
    reasons = set(re.findall(r"`(\w+)`(?=[^|]*\| )", rows))
    assert {"order", "weighted", "trickle", "last_resort"} <= reasons
    samples = _after(*(replace(RECORD, reason=reason) for reason in reasons))
    for reason in reasons:
        labels = {"model": "m0", "tier": "none", "provider": "p0", "reason": reason}
        assert _value(samples, "gateway_route_decisions_total", **labels) == 1


def test_a_second_try_at_the_same_place_is_no_fallback() -> None:
    samples = _after(replace(RECORD, attempts=(FAILED, replace(ATTEMPT, kind="fallback"))))
    assert _value(samples, "gateway_fallbacks_total", model="m0", reason="overloaded") is None
    assert _value(samples, "gateway_attempts_total", at="p0/m0", kind="fallback", outcome="ok") == 1


def test_an_alias_counts_under_the_name_it_stands_for() -> None:
    samples = _after(replace(RECORD, requested_model="nickname"))
    assert _value(samples, "gateway_requests_total", model="m0", tier="none", outcome="ok") == 1


def test_a_configured_tier_is_a_label() -> None:
    metrics = Metrics(catalog(), tiers=("fast",))
    metrics.record(replace(RECORD, tier="fast"))
    assert _value(_samples(metrics), "gateway_requests_total", model="m0", tier="fast", outcome="ok") == 1


@pytest.mark.parametrize("quality", ["short", "burst", "hidden_reasoning", "estimate", "truncated", None])
def test_only_ok_samples_enter_the_speed_histograms(quality: str | None) -> None:
    samples = _after(replace(RECORD, speed=replace(RECORD.speed, quality=quality)))
    for name in ("output_tokens_per_second", "output_chars_per_second", "time_per_output_token_seconds"):
        assert _value(samples, f"gateway_{name}_count", at="p0/m0") == 0
    assert _value(samples, "gateway_ttft_seconds_count", at="p0/m0", prompt_size="8k") == 1


@pytest.mark.parametrize(
    ("tokens", "size"),
    [
        *((0, "2k"), (1_999, "2k"), (2_000, "8k"), (7_999, "8k"), (8_000, "32k"), (32_000, "128k")),
        *((127_999, "128k"), (128_000, "more"), (None, "unknown")),
    ],
)
def test_the_first_token_is_booked_by_the_size_of_its_prompt(tokens: int | None, size: str) -> None:
    samples = _after(replace(RECORD, tokens=Tokens(input=tokens, source="usage")))
    assert _value(samples, "gateway_ttft_seconds_count", at="p0/m0", prompt_size=size) == 1


def test_what_is_not_known_is_not_observed() -> None:
    bare = replace(
        RECORD,
        timing=Timing(),
        tokens=Tokens(),
        speed=Speed(),
        client=replace(RECORD.client, ttft_ms=None),
        attempts=(),
    )
    samples, before = _after(bare), _after()
    unmoved = ("ttft", "ttfa", "overhead", "connect", "pool_wait", "tokens_total", "cost", "output", "samples")
    for (name, labels), value in samples.items():
        if any(word in name for word in unmoved):
            assert value == before[name, labels], name


def test_a_fallback_books_each_attempt_where_it_was_made() -> None:
    samples = _after(replace(RECORD, deployment="p1/m0", provider="p1", attempts=(FAILED, SECOND)))
    assert _value(samples, "gateway_attempts_total", at="p0/m0", kind="primary", outcome="overloaded") == 1
    assert _value(samples, "gateway_attempts_total", at="p1/m0", kind="fallback", outcome="ok") == 1
    assert _value(samples, "gateway_fallbacks_total", model="m0", reason="overloaded") == 1
    assert _value(samples, "gateway_ttft_seconds_count", at="p0/m0", prompt_size="8k") == 0
    assert _value(samples, "gateway_ttft_seconds_count", at="p1/m0", prompt_size="8k") == 1
    assert _value(samples, "gateway_cost_usd_total", at="p0/m0") == 0


def test_gauges_follow_what_is_under_way() -> None:
    metrics = Metrics(catalog())
    metrics.request_began("m0")
    metrics.request_began("nobody's")
    metrics.attempt_began("p0/m0")
    samples = _samples(metrics)
    assert _value(samples, "gateway_requests_in_flight", model="m0") == 1
    assert _value(samples, "gateway_requests_in_flight", model="other") == 1
    assert _value(samples, "gateway_deployment_in_flight", at="p0/m0") == 1
    metrics.request_ended("m0")
    metrics.request_ended("nobody's")
    metrics.attempt_ended("p0/m0")
    samples = _samples(metrics)
    assert _value(samples, "gateway_requests_in_flight", model="m0") == 0
    assert _value(samples, "gateway_requests_in_flight", model="other") == 0
    assert _value(samples, "gateway_deployment_in_flight", at="p0/m0") == 0


def test_states_are_asked_for_at_each_scrape() -> None:
    states = {"p0/m0": "cooling", "p1/m0": "ok"}
    metrics = Metrics(catalog())
    assert _value(_samples(metrics), "gateway_deployment_state", at="p0/m0") == 1
    metrics.watch_states(lambda deployment: states[deployment.id])
    assert _value(_samples(metrics), "gateway_deployment_state", at="p0/m0") == 4
    states["p0/m0"] = "ok"
    assert _value(_samples(metrics), "gateway_deployment_state", at="p0/m0") == 0


def test_a_transition_is_counted_by_its_target_and_reason() -> None:
    metrics = Metrics(catalog())
    metrics.transition("p0/m0", "cooling", "overloaded")
    metrics.transition("p0/m0", "sagging", "something said in free text")
    samples = _samples(metrics)
    assert _value(samples, "gateway_deployment_transitions_total", at="p0/m0", to="cooling", reason="overloaded") == 1
    assert _value(samples, "gateway_deployment_transitions_total", at="p0/m0", to="sagging", reason="other") == 1
    assert _value(samples, "gateway_deployment_state", at="p0/m0") == 2


def test_the_scrape_in_slices_is_the_same_text_and_lets_others_run() -> None:
    metrics = Metrics(catalog(models=40, providers=5))
    metrics.loop_lag(0.003)

    async def scrape() -> tuple[bytes, int]:
        turns = 0

        async def neighbour() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(neighbour())
        text = b"".join(await metrics.scrape())
        task.cancel()
        return text, turns

    text, turns = asyncio.run(scrape())
    ours = [line for line in text.splitlines() if line.startswith(b"gateway_")]
    assert ours == [line for line in metrics.render().splitlines() if line.startswith(b"gateway_")]
    assert turns >= 2


@pytest.mark.parametrize(("quality", "source"), [("burst", "server"), ("whole_tool", "server"), ("ok", "client")])
def test_speeds_by_the_providers_clock_enter_the_histogram_and_are_counted_apart(quality: str, source: str) -> None:
    speed = Speed(output_tps=2300.0, tpot_ms=1000 / 2300, quality=quality, source=source)
    samples = _after(replace(RECORD, speed=speed))
    assert _value(samples, "gateway_output_tokens_per_second_sum", at="p0/m0") == 2300.0
    assert _value(samples, "gateway_output_chars_per_second_count", at="p0/m0") == 0
    assert _value(samples, "gateway_speed_samples_total", at="p0/m0", quality=quality) == 1
    expected = 1 if source == "server" else None
    assert _value(samples, "gateway_server_clock_samples_total", at="p0/m0") == expected


@pytest.mark.parametrize(("models", "providers"), [(40, 5), (200, 1), (1, 200)])
def test_two_hundred_deployments_stay_under_sixty_thousand_series(models: int, providers: int) -> None:
    deployments = catalog(models, providers)
    metrics = Metrics(deployments)
    metrics.watch_speeds(
        Book(dict.fromkeys(deployments.deployments, REPORT), dict.fromkeys(deployments.deployments, EVIDENCE))
    )
    lines = [line for line in metrics.render().splitlines() if line.startswith(b"gateway_")]
    assert len(lines) == metrics.series < 60_000


def test_every_prompt_size_and_failure_at_two_hundred_deployments_would_be_more() -> None:
    """What the warning's limit does not count: it is for what every deployment has."""
    metrics = Metrics(catalog(models=40, providers=5))
    before = metrics.series
    metrics.record(replace(RECORD, tokens=Tokens(input=200_000, source="usage"), attempts=(FAILED, SECOND)))
    # A histogram of one size, a failed attempt, a fallback.
    assert metrics.series - before == 27


def test_the_process_collectors_are_appended() -> None:
    names = {name for name, _ in _after()}
    assert {"python_info", "python_gc_collections_total", "gateway_build_info"} <= names


def test_no_label_holds_what_a_caller_wrote() -> None:
    secrets = replace(
        RECORD,
        id="id-7",
        key="alice-7",
        client_request_id="crid-7",
        task="task-7",
        session="session-7",
        error="error-7",
    )
    metrics = Metrics(catalog())
    metrics.record(replace(secrets, requested_model="model-7", attempts=(replace(FAILED, error="code-7"), SECOND)))
    assert b"-7" not in metrics.render()
