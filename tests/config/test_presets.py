"""The rows of presets.yaml, and that the documentation has each."""

from pathlib import Path

import pytest

from gateway.config.load import inspect_text
from gateway.config.presets import presets

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_vendors_of_this_version_are_there() -> None:
    expected = "openai groq cerebras fireworks together deepseek openrouter mistral xai moonshot"
    assert set(expected.split()) <= set(presets())


@pytest.mark.parametrize("name", presets())
def test_a_preset_row_is_enough_to_serve(name: str) -> None:
    text = f"version: 1\nproviders: {{{name}: }}\nmodels: {{m: {{deployments: [{{provider: {name}}}]}}}}\n"
    preset = presets()[name]
    found = inspect_text(text, {preset.key: "k" * 20}, "c.yaml", Path("."))
    assert found.problems == ()
    assert found.warnings == ()
    assert found.config is not None
    assert found.config.providers[name].base_url == preset.base_url
    assert preset.base_url.startswith("https://")


@pytest.mark.parametrize("name", presets())
def test_a_preset_has_its_row_in_the_documentation(name: str) -> None:
    preset = presets()[name]
    assert f"| `{name}` | `{preset.base_url}` | `{preset.key}` |" in DOCS.read_text(encoding="utf-8")


def test_key_variables_are_told_apart() -> None:
    assert len({preset.key for preset in presets().values()}) == len(presets())


def test_mistral_is_never_asked_for_usage_and_gets_its_own_names() -> None:
    quirks = presets()["mistral"].quirks
    assert not quirks.include_usage
    assert "stream_options" in quirks.refuses
    assert quirks.renames == {"max_completion_tokens": "max_tokens", "seed": "random_seed"}
