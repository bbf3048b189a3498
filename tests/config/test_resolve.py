"""From settings to the core's values."""

import orjson

from gateway.config.resolve import breaker_policy, catalog, default_timeouts, open_providers, sag_policy
from gateway.config.schema import Config
from gateway.core.types import BreakerPolicy, Credential, Price, SagPolicy, Timeouts
from tests.config.yaml_text import inspected

TEXT = """\
version: 1
providers:
  groq: {}
  lane: {preset: openai, api_key: caller, any_model: true}
  house:
    base_url: http://10.0.0.5:8000/v1/
    api_key: ${HOUSE_KEY:-none}
    headers: {X-Team: coding}
    max_parallel: 64
    timeouts: {connect: 2s}
    trusted: true
    failover_on: [400]
models:
  kimi-k3:
    aliases: [kimi]
    deployments:
      - {provider: groq, model: moonshotai/kimi-k3, price: {input: 2, output: 8}, context: 262144}
      - provider: house
        weight: 3
        features: [tools]
        body: {service_tier: "${TIER}", extra: [1, {a: null}]}
  glm-5:
    deployments: [{provider: groq, id: groq/glm, max_output: 1000}]
routes:
  fast:
    description: tight loops
    models: [kimi-k3, glm-5]
    strategy: weighted
    timeouts: {ttft: 3s, total: none}
    fallback: [batch]
  batch: {models: [glm-5]}
defaults:
  timeouts: {connect: 1s, ttft: 20s, idle: auto, total: 10m}
  sag: {below: 50%, recover: 0.6, dwell: 2s}
  breaker: {failures: 3, ratio: 25%, min_requests: 4, window: 30s, cooldown: 1s, max_cooldown: 1m}
"""


def config(text: str = TEXT) -> Config:
    """A valid configuration, parsed."""
    found = inspected(text, {"GROQ_API_KEY": "gsk-key", "TIER": "priority"})
    assert found.problems == ()
    assert found.config is not None
    return found.config


def test_public_names_are_models_then_routes_and_aliases_lead_to_models() -> None:
    resolved = catalog(config())
    assert resolved.public == ("kimi-k3", "glm-5", "fast", "batch")
    assert resolved.targets["kimi"] is resolved.targets["kimi-k3"]
    assert resolved.targets["kimi-k3"].aliases == ("kimi",)
    assert resolved.targets["fast"].route == "fast"
    assert resolved.targets["kimi-k3"].route is None


def test_a_deployment_is_called_provider_slash_upstream_model() -> None:
    resolved = catalog(config())
    assert list(resolved.deployments) == ["groq/moonshotai/kimi-k3", "house/kimi-k3", "groq/glm"]
    first, second, third = resolved.deployments.values()
    assert (first.model, first.upstream_model, first.context) == ("kimi-k3", "moonshotai/kimi-k3", 262144)
    assert (first.price, first.features) == (Price(input=2, output=8), None)
    assert (second.price, second.features, second.weight) == (None, frozenset({"tools"}), 3.0)
    assert (third.upstream_model, third.max_output) == ("glm-5", 1000)


def test_a_route_has_the_deployments_of_its_models_in_order() -> None:
    fast = catalog(config()).targets["fast"]
    assert [entry.id for entry in fast.deployments] == ["groq/moonshotai/kimi-k3", "house/kimi-k3", "groq/glm"]
    assert (fast.strategy, fast.fallback, fast.description) == ("weighted", ("batch",), "tight loops")


def test_timeouts_of_a_route_stand_over_the_defaults_over_the_built_in_ones() -> None:
    targets = catalog(config()).targets
    assert targets["fast"].timeouts == Timeouts(connect_s=1, ttft_s=3, idle_s=None, total_s=None)
    assert targets["batch"].timeouts == Timeouts(connect_s=1, ttft_s=20, idle_s=None, total_s=600)
    assert targets["kimi-k3"].timeouts == default_timeouts(config()) == targets["batch"].timeouts
    assert default_timeouts(config(TEXT.partition("defaults:")[0])) == Timeouts()


def test_auto_in_a_route_stands_over_a_default_deadline() -> None:
    text = TEXT.replace("batch: {models: [glm-5]}", "batch: {models: [glm-5], timeouts: {ttft: auto}}")
    assert catalog(config(text)).targets["batch"].timeouts.ttft_s is None


def test_providers_are_signed_as_they_are_configured() -> None:
    providers = catalog(config()).providers
    assert providers["groq"].credential == Credential("fixed", "authorization", "Bearer gsk-key")
    assert providers["lane"].credential == Credential("caller")
    assert providers["house"].credential == Credential("none")
    assert open_providers(config()) == ("lane",)


def test_a_provider_carries_its_settings() -> None:
    house = catalog(config()).providers["house"]
    assert (house.base_url, house.headers) == ("http://10.0.0.5:8000/v1", (("X-Team", "coding"),))
    assert (house.max_parallel, house.connect_s, house.trusted) == (64, 2.0, True)
    assert house.failover_on == frozenset({400})
    assert house.quirks.include_usage


def test_a_preset_by_another_name_keeps_its_quirks() -> None:
    providers = catalog(config()).providers
    assert providers["lane"].base_url == "https://api.openai.com/v1"
    assert providers["lane"].quirks.developer_role
    assert not providers["groq"].quirks.developer_role
    assert "logprobs" in providers["groq"].quirks.refuses


def test_what_is_merged_into_a_body_is_plain_and_read_only() -> None:
    body = catalog(config()).deployments["house/kimi-k3"].body
    assert type(body["service_tier"]) is str
    assert orjson.dumps(dict(body, extra=list(body["extra"][:1]))) == b'{"service_tier":"priority","extra":[1]}'


def test_policies_come_from_the_defaults() -> None:
    assert sag_policy(config()) == SagPolicy(0.5, 0.6, 2.0)
    assert breaker_policy(config()) == BreakerPolicy(3, 0.25, 4, 30.0, 1.0, 60.0)
    bare = config(TEXT.partition("defaults:")[0])
    assert (sag_policy(bare), breaker_policy(bare)) == (SagPolicy(), BreakerPolicy())
