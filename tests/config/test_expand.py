"""Environment and secret-file references in a configuration."""

from pathlib import Path

import pytest

from gateway.config.load import inspect, load
from tests.config.yaml_text import ENVIRON, GOOD, inspected, problems, with_server


def test_references_are_read_from_the_environment() -> None:
    text = with_server('{port: "${PORT:-9000}", host: "${HOST:-localhost}", max_streams: "${STREAMS}"}')
    config = inspected(text, {**ENVIRON, "STREAMS": "7", "HOST": ""}).config
    assert config is not None
    assert (config.server.port, config.server.host, config.server.max_streams) == (9000, "localhost", 7)


def test_a_doubled_dollar_is_a_literal_one() -> None:
    text = GOOD.replace("groq: {}", 'groq: {headers: {X-A: "$${HOME}"}}')
    config = inspected(text).config
    assert config is not None
    assert config.providers["groq"].headers == {"X-A": "${HOME}"}


@pytest.mark.parametrize("reference", ["${}", "${1X}", "${X-default}", "${X", "${X Y}"])
def test_a_malformed_reference_is_told(reference: str) -> None:
    told = problems(GOOD.replace("groq: {}", f"groq: {{api_key: '{reference}'}}"))
    assert told == [
        "c.yaml:3: providers.groq.api_key: holds a reference that is not understood; write ${VAR} or ${VAR:-default}"
    ]


def test_missing_secrets_are_named_and_the_rest_is_still_resolved() -> None:
    text = GOOD.replace(
        "groq: {}",
        'groq: {}\n  house: {base_url: "http://h/v1", api_key: "${HOUSE}"}\n'
        '  files: {base_url: "http://f/v1", api_key: "file:/nowhere/secret"}',
    )
    found = inspected(text, {})
    assert found.missing == ("HOUSE", "file:/nowhere/secret", "GROQ_API_KEY")
    assert len(found.problems) == 3
    assert found.config is not None
    assert list(found.config.models) == ["kimi-k3"]


def test_a_secret_file_is_read_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "groq.key").write_text("gsk-from-a-file\n")
    file = tmp_path / "gateway.yaml"
    file.write_text(GOOD.replace("groq: {}", "groq: {api_key: 'file:groq.key', ca_file: ca.pem}"))
    provider = load(file, {}).providers["groq"]
    assert provider.api_key is not None
    assert provider.api_key.get_secret_value() == "gsk-from-a-file"
    assert provider.ca_file == str(tmp_path / "ca.pem")


def test_an_empty_or_odd_secret_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "odd").write_bytes(b"\xff\xfe")
    file = tmp_path / "gateway.yaml"
    for name, says in (("empty", "is empty"), ("odd", "is not UTF-8"), (".", "does not exist or cannot be read")):
        file.write_text(GOOD.replace("groq: {}", f"groq: {{api_key: 'file:{name}'}}"))
        assert says in inspect(file, {}).problems[0]


def test_only_a_secret_may_be_a_file() -> None:
    text = with_server("{host: 'file:/etc/hostname'}")
    assert "server.host: must be an IP address" in problems(text)[0]


def test_the_environment_cannot_name_a_file_to_read(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("the-content-of-the-file")
    text = GOOD.replace("groq: {}", 'groq: {api_key: "${K}"}')
    config = inspected(text, {"K": f"file:{tmp_path}/s"}).config
    assert config is not None
    assert config.providers["groq"].api_key is not None
    assert config.providers["groq"].api_key.get_secret_value() == f"file:{tmp_path}/s"
