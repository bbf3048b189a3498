"""Where a configuration comes from."""

from pathlib import Path

import pytest

from gateway.config.load import automatic, find
from gateway.core.errors import ConfigError
from tests.config.yaml_text import ENVIRON, GOOD, with_server


def test_a_named_file_comes_before_the_variable_before_the_local_file(tmp_path: Path) -> None:
    for name, port in (("named.yaml", 1), ("variable.yaml", 2), ("gateway.yaml", 3)):
        (tmp_path / name).write_text(with_server(f"{{port: {port}}}"))
    by_variable = {**ENVIRON, "GATEWAY_CONFIG": "variable.yaml"}
    assert find("named.yaml", by_variable, tmp_path).config.server.port == 1
    assert find(None, by_variable, tmp_path).config.server.port == 2
    assert find(None, {**ENVIRON, "GATEWAY_CONFIG": ""}, tmp_path).config.server.port == 3
    assert find(None, ENVIRON, tmp_path).source == "gateway.yaml"


def test_a_named_file_that_is_not_there_is_no_reason_to_look_further(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"^other\.yaml: does not exist$"):
        find("other.yaml", ENVIRON, tmp_path)


def test_without_a_file_every_preset_with_a_key_serves_any_model(tmp_path: Path) -> None:
    found = find(None, {"GROQ_API_KEY": "g", "XAI_API_KEY": "x", "OPENAI_API_KEY": " "}, tmp_path)
    assert found.source == "automatic (from GROQ_API_KEY, XAI_API_KEY)"
    assert {name: provider.any_model for name, provider in found.config.providers.items()} == {
        "groq": True,
        "xai": True,
    }


def test_without_a_file_and_without_a_key_the_demo_is_named(tmp_path: Path) -> None:
    assert automatic({}) is None
    with pytest.raises(ConfigError, match="`gateway demo`"):
        find(None, {}, tmp_path)


def test_a_key_that_no_header_can_hold_is_told_without_repeating_it() -> None:
    with pytest.raises(ConfigError, match="GROQ_API_KEY") as raised:
        automatic({"GROQ_API_KEY": "line\nbreak"})
    assert "line" not in str(raised.value).replace("line break", "")
