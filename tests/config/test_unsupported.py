"""Settings this version does not act on are refused where they are given."""

import pytest

from gateway.config.unsupported import UNSUPPORTED
from tests.config.yaml_text import GOOD, problems

_KEY = "sha256:" + "0" * 64
_FAST = "tiers: {fast: {min_tps: 4}}\n"

# One way to give each setting of the table, by its path in the table.
GIVEN = {
    "auth.keys.*.rpm": GOOD + f"auth: {{keys: [{{name: a, key: '{_KEY}', rpm: 600}}]}}\n",
    "auth.keys.*.tpm": GOOD + f"auth: {{keys: [{{name: a, key: '{_KEY}', tpm: 2000000}}]}}\n",
    "auth.keys.*.max_parallel": GOOD + f"auth: {{keys: [{{name: a, key: '{_KEY}', max_parallel: 5}}]}}\n",
    "auth.keys.*.budget": GOOD + f"auth: {{keys: [{{name: a, key: '{_KEY}', budget: {{usd: 50, per: day}}}}]}}\n",
    "state": GOOD + "state: redis://host:6379/0\n",
    "providers.*.dialect": GOOD.replace("groq: {}", "groq: {dialect: anthropic}"),
    "providers.*.rpm": GOOD.replace("groq: {}", "groq: {rpm: 600}"),
    "providers.*.tpm": GOOD.replace("groq: {}", "groq: {tpm: 600}"),
    "tiers": GOOD + "tiers: {fast: {min_tps: {p50: 120, p90: 60}, max_ttft: {p90: 3.0}}}\n",
    "models.*.deployments.*.tier": GOOD.replace("{provider: groq}", "{provider: groq, tier: fast}")
    + "tiers: {fast: {min_tps: 4}}\n",
    "models.*.deployments.*.premium_of": GOOD.replace(
        "- {provider: groq}", "- {provider: groq, id: a}\n      - {provider: groq, premium_of: a}"
    ),
    "routes.*.tier": GOOD + "routes: {r: {models: [kimi-k3], tier: fast}}\ntiers: {fast: {max_ttft: 800ms}}\n",
    "routes.*.strategy": GOOD + "routes: {r: {models: [kimi-k3], strategy: fastest}}\n",
    "routes.*.guard": GOOD + "routes: {r: {models: [kimi-k3], guard: {min_tps: 15, after: 3s, action: mark}}}\n",
    "routes.*.hedge": GOOD + "routes: {r: {models: [kimi-k3], hedge: {after: p95, budget: 5%}}}\n",
    "routes.*.max_price": GOOD + "routes: {r: {models: [kimi-k3], max_price: {input: 5, output: 40}}}\n",
    "defaults.tier": GOOD + "defaults: {tier: fast}\ntiers: {fast: {min_tps: 4}}\n",
    "defaults.strategy": GOOD + "defaults: {strategy: balanced}\n",
    "defaults.guard": GOOD + "defaults: {guard: {min_tps: 15}}\n",
    "defaults.hedge": GOOD + "defaults: {hedge: {after: 2s}}\n",
    "defaults.max_price": GOOD + "defaults: {max_price: {output: 40}}\n",
    "defaults.window": GOOD + "defaults: {window: 5s}\n",
    "defaults.min_samples": GOOD + "defaults: {min_samples: 5}\n",
    "defaults.explore": GOOD + "defaults: {explore: 20%}\n",
    "defaults.probes": GOOD + "defaults: {probes: {every: 24h, at: 03:00, budget: {usd: 1, per: day}}}\n",
    "telemetry.compat": GOOD + "telemetry: {compat: genai}\n",
    "telemetry.otlp_endpoint": GOOD + "telemetry: {otlp_endpoint: 'http://127.0.0.1:4318'}\n",
    "telemetry.capture_content": GOOD + "telemetry: {capture_content: true}\n",
}


def test_every_row_of_the_table_is_tried_here() -> None:
    assert list(GIVEN) == [row.path for row in UNSUPPORTED]


@pytest.mark.parametrize("path", GIVEN)
def test_a_setting_without_effect_is_refused_and_otherwise_valid(path: str) -> None:
    """Only refusals: the rest of the schema takes each setting as the interface writes it."""
    told = problems(GIVEN[path])
    assert told
    assert all("is not enforced by this version; remove it" in line for line in told)


@pytest.mark.parametrize(
    "text",
    [
        "state: memory",
        "state_dir: null",
        "defaults: {strategy: weighted}",
        "telemetry: {capture_content: false}",
        "routes: {r: {models: [kimi-k3], strategy: order, guard: null}}",
    ],
)
def test_what_is_acted_on_is_not_refused(text: str) -> None:
    assert problems(GOOD + text + "\n") == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("defaults: {guard: {min_tps: 0}}", "defaults.guard.min_tps: must be more than 0"),
        ("defaults: {guard: {min_tps: 5, action: stop}}", "one of: mark, continue, error"),
        ("defaults: {hedge: {after: p100}}", "defaults.hedge.after: must be a percentile"),
        ("defaults: {probes: {every: 24h, at: 25:00}}", "defaults.probes.at: must be a time of day"),
        ("tiers: {fast: {}}", "tiers.fast: must promise min_tps, max_ttft or both"),
        ("tiers: {fast: {min_tps: {p0: 5}}}", "tiers.fast.min_tps.p0: is no percentile"),
        ("tiers: {fast: {min_tps: fast}}", "must be tokens per second"),
        ("defaults: {tier: fastt}\ntiers: {fast: {min_tps: 4}}", "defaults.tier: is not enforced"),
        ("state: mongodb://x", "state: is not enforced"),
        ("telemetry: {otlp_endpoint: x}", "telemetry.otlp_endpoint: is not enforced"),
        ("defaults: {window: 0, explore: 120%}", "defaults.explore: is not enforced"),
    ],
)
def test_settings_that_are_refused_are_validated_all_the_same(text: str, says: str) -> None:
    assert any(says in line for line in problems(f"{GOOD}{text}\n"))
