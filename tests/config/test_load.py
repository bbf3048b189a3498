"""From a file to a Config: every mistake at once, each with its line."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.load import inspect, load
from gateway.core.errors import ConfigError
from tests.config.yaml_text import ENVIRON, GOOD, inspected, problems, with_server

TWENTY_MISTAKES = """\
version: 2
servr: {}
server:
  port: 99999
  max_body: 32 megabytes
  max_streams: true
  drain_timeout: -5s
auth:
  keys:
    - name: bob
      key: short
      modles: [fast]
    - name: bob
      key: "sha256:0000000000000000000000000000000000000000000000000000000000000000"
      rpm: 5
providers:
  grok: {}
  house:
    base_url: ftp://10.0.0.5/v1
    api_key: caller
    proxy: socks5://10.0.0.6:1080
  groq: {api_key: "${NOT_SET}"}
models:
  kimi-k3:
    aliases: [fast]
    deployments:
      - provider: hous
      - provider: house
        features: [toolz]
      - provider: house
  empty:
    deployments: []
routes:
  fast:
    models: [kimi-k4]
    fallback: [batch]
  batch:
    models: [kimi-k3]
    strategy: cheapest
    fallback: [fast, slow]
"""


def test_a_file_with_many_mistakes_lists_them_all_with_their_lines() -> None:
    expected = [
        (1, "version", "must be 1"),
        (2, "servr", "did you mean 'server'?"),
        (4, "server.port", "must be at most 65535"),
        (5, "server.max_body", "must be a size"),
        (6, "server.max_streams", "must be a whole number, not true or false"),
        (7, "server.drain_timeout", "must be a duration"),
        (11, "auth.keys[0].key", "a key has 16 to 512 characters"),
        (12, "auth.keys[0].modles", "did you mean 'models'?"),
        (13, "auth.keys[1].name", "the key name 'bob' is taken"),
        (15, "auth.keys[1].rpm", "is not enforced by this version; remove it"),
        (17, "providers.grok.base_url", "did you mean 'groq'?"),
        (19, "providers.house.base_url", "must begin with http:// or https://"),
        (20, "providers.house.api_key", "caller cannot stand beside auth.keys"),
        (21, "providers.house.proxy", "SOCKS proxies are not supported"),
        (22, "providers.groq.api_key", "needs the environment variable NOT_SET"),
        (25, "models.kimi-k3.aliases[0]", "the name 'fast' is taken by a route"),
        (27, "models.kimi-k3.deployments[0].provider", "did you mean 'house'?"),
        (29, "models.kimi-k3.deployments[1].features[0]", "did you mean 'tools'?"),
        (30, "models.kimi-k3.deployments[2]", "the deployment id 'house/kimi-k3' is taken (line 28)"),
        (32, "models.empty.deployments", "must not be empty"),
        (35, "routes.fast.models[0]", "did you mean 'kimi-k3'?"),
        (39, "routes.batch.strategy", "is not enforced by this version; remove it (allowed now: order, weighted)"),
        (40, "routes.batch.fallback[0]", "falls back in a circle: 'fast' -> 'batch' -> 'fast'"),
        (40, "routes.batch.fallback[1]", "unknown route 'slow'"),
    ]
    found = problems(TWENTY_MISTAKES)
    assert len(found) == len(expected)
    for line, (number, path, says) in zip(found, expected, strict=True):
        assert line.startswith(f"c.yaml:{number}: {path}: ")
        assert says in line


def test_load_raises_what_inspect_lists(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(TWENTY_MISTAKES)
    with pytest.raises(ConfigError) as raised:
        load(file, ENVIRON)
    assert raised.value.problems == list(inspect(file, ENVIRON).problems)
    assert raised.value.problems[0] == f"{file}:1: version: must be 1"


@pytest.mark.parametrize(
    ("settings_text", "says"),
    [
        ("{port: '8080'}", "server.port: must be a whole number, not text"),
        ("{port: 80.5}", "server.port: must be a whole number, not a number with a fraction"),
        ("{port: 1e2}", "server.port: must be a whole number"),
        ("{host: [a]}", "server.host: must be text (put it in quotes if it looks like a number), not a list"),
        ("{host: 'http://x'}", "server.host: must be an IP address or host name"),
        ("{host: 1.2.3.400}", "server.host: must be an IP address or host name"),
        ("{host: 0.0.0.0}", "server.host: is not a loopback address and auth.keys is empty"),
        ("{host: '::'}", "server.host: is not a loopback address"),
        ("{host: gw.example}", "server.host: is not a loopback address"),
        ("{hosts: gw.local}", "server.hosts: must be a list, not text"),
        ("{cors_origins: ['*']}", "server.cors_origins[0]: must list each origin"),
        ("{cors_origins: ['https://x/y']}", "server.cors_origins[0]: must be an origin"),
        ("{metrics_listen: 9090}", "server.metrics_listen: must be text"),
        ("{metrics_listen: localhost}", "server.metrics_listen: must be a host and a port"),
        ("{metrics_listen: '127.0.0.1:8080'}", "server.metrics_listen: must differ from"),
        ("{max_body: 2GB}", "server.max_inflight_bytes: must be at least max_body"),
        ("{max_streams: 0}", "server.max_streams: must be at least 1"),
        ("{max_streams: .inf}", "server.max_streams: must be a whole number"),
        ("{keepalive_after: 0}", "server.keepalive_after: must be more than 0"),
        ("{keepalive_after: .nan}", "server.keepalive_after: must be a duration"),
        ("{allow_open: yes}", "server.allow_open: must be true or false, not text"),
        ("[a]", "server: must be a mapping (key: value), not a list"),
        ("on", "server: must be a mapping (key: value), not text"),
    ],
)
def test_a_wrong_server_setting_is_told(settings_text: str, says: str) -> None:
    told = [line for line in problems(with_server(settings_text)) if says in line]
    assert len(told) == 1
    assert told[0].startswith("c.yaml:8: ")


@pytest.mark.parametrize(
    "settings_text",
    [
        "",
        "{}",
        "null",
        "{host: localhost}",
        "{host: '::1'}",
        "{host: 127.8.9.1}",
        "{host: 0.0.0.0, allow_open: true}",
        "{port: 0}",
        "{metrics_listen: '[::1]:9090'}",
        "{drain_timeout: 0}",
        "{max_body: null}",
        "{cors_origins: ['https://app.example:443']}",
    ],
)
def test_a_right_server_setting_is_taken(settings_text: str) -> None:
    assert problems(with_server(settings_text)) == []


def test_a_network_host_is_fine_with_keys() -> None:
    text = with_server("{host: 0.0.0.0}") + 'auth: {keys: [{name: a, key: "${KEY}"}]}\n'
    assert problems(text, {**ENVIRON, "KEY": "0123456789abcdef"}) == []


def test_a_null_setting_is_not_given() -> None:
    text = GOOD + "state_dir: null\ntelemetry: {compat: null}\nauth:\nroutes:\n"
    assert problems(text) == []


def test_the_defaults_are_those_of_the_interface() -> None:
    config = inspected(GOOD).config
    assert config is not None
    assert (config.server.host, config.server.port, config.server.max_body) == ("127.0.0.1", 8080, 32_000_000)
    assert (config.server.drain_timeout, config.server.keepalive_after, config.server.max_streams) == (300, 10, 2000)
    assert (config.defaults.strategy, config.telemetry.request_log, config.state) == ("order", "stdout", "memory")
    assert (config.defaults.sag.below, config.defaults.sag.recover, config.defaults.sag.dwell) == (0.8, 0.85, 30)


def test_sections_cannot_be_changed() -> None:
    config = inspected(GOOD).config
    assert config is not None
    with pytest.raises(ValueError, match="frozen"):
        config.server.port = 1


_NAMES = st.sampled_from(
    [
        "version",
        "server",
        "auth",
        "keys",
        "name",
        "key",
        "providers",
        "groq",
        "house",
        "base_url",
        "models",
        "kimi-k3",
        "deployments",
        "provider",
        "routes",
        "fast",
        "fallback",
        "defaults",
        "timeouts",
        "ttft",
        "sag",
        "below",
        "tiers",
        "min_tps",
        "p50",
        "aliases",
        "api_key",
        "headers",
        "body",
        "state",
        "id",
        "preset",
        "any_model",
        "x\ny",
        "é",
    ]
)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["fast", "kimi-k3", "groq", "${X}", "${X:-1}", "file:/x", "5s", "5%", "1MB", "auto", "caller"]),
)
_TREES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=5)),
    max_leaves=25,
)


def _as_yaml(value: object) -> str:
    """JSON is YAML, and what the parser makes of NaN is part of the question."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_as_yaml(str(key))}: {_as_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_yaml, value)) + "]"
    if isinstance(value, str):
        return '"' + value.encode("unicode_escape").decode().replace('"', '\\"') + '"'
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(_NAMES, _TREES, max_size=6))
def test_any_tree_of_settings_is_inspected_without_raising(tree: dict[str, object]) -> None:
    found = inspected(_as_yaml(tree))
    assert found.config is not None or found.problems
    assert all(line.isprintable() and line.startswith("c.yaml") for line in found.problems)
