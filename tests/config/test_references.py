"""Mistakes between settings."""

import pytest

from tests.config.yaml_text import GOOD, problems

_MORE = """\
  glm-5:
    aliases: [glm]
    deployments:
      - {provider: groq, model: glm-5}
"""


def told(text: str) -> list[str]:
    """The problems after a good configuration of two models, without file name and line."""
    return [line.split(": ", 1)[1] for line in problems(GOOD + _MORE + text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("routes: {fast: {models: [kimi-k3, kimi-k3]}}", ["routes.fast.models[1]: 'kimi-k3' is listed twice"]),
        ("routes: {fast: {models: [glm]}}",
         ["routes.fast.models[0]: unknown model 'glm'; did you mean 'glm-5'? models: kimi-k3, glm-5"]),
        ("routes: {a: {models: [glm-5]}, b: {models: [a]}}",
         ["routes.b.models[0]: a route; a route is made of models"]),
        ("routes: {fast: {models: [glm-5], fallback: [kimi-k3]}}",
         ["routes.fast.fallback[0]: is a model; fallback takes routes"]),
        ("routes: {fast: {models: [glm-5], fallback: [fast]}}",
         ["routes.fast.fallback[0]: falls back in a circle: 'fast' -> 'fast'"]),
        ("routes: {glm: {models: [glm-5]}}",
         ["models.glm-5.aliases[0]: the name 'glm' is taken by a route; every public name stands for one thing"]),
        ("routes: {glm-5: {models: [glm-5]}}",
         ["routes.glm-5: the name is taken by a model; every public name stands for one thing"]),
        ("auth: {keys: [{name: a, key: 'sha256:%s', models: [glm, kimi-k3, fast]}]}" % ("0" * 64),
         ["auth.keys[0].models[2]: unknown model or route 'fast'; names: kimi-k3, glm-5, glm"]),
    ],
)  # fmt: skip
def test_a_mistake_between_settings_is_told(text: str, expected: list[str]) -> None:
    assert told(text + "\n") == expected


def test_fallbacks_that_meet_again_are_no_circle() -> None:
    routes = "a: {models: [glm-5], fallback: [b, c]}, b: {models: [glm-5], fallback: [d]}, "
    routes += "c: {models: [glm-5], fallback: [d]}, d: {models: [glm-5]}"
    assert told(f"routes: {{{routes}}}\n") == []


def test_each_circle_is_told_once() -> None:
    routes = "a: {models: [glm-5], fallback: [b]}, b: {models: [glm-5], fallback: [c]}, "
    routes += "c: {models: [glm-5], fallback: [b]}, d: {models: [glm-5], fallback: [a]}"
    assert told(f"routes: {{{routes}}}\n") == ["routes.c.fallback[0]: falls back in a circle: 'b' -> 'c' -> 'b'"]


def test_a_chain_of_a_thousand_fallbacks_is_no_problem() -> None:
    chain = "".join(f"  r{n}: {{models: [glm-5], fallback: [r{n + 1}]}}\n" for n in range(1000))
    assert told(f"routes:\n{chain}  r1000: {{models: [glm-5]}}\n") == []


def test_an_id_apart_makes_two_lanes_of_one_model_possible() -> None:
    two = GOOD + "      - {provider: groq, body: {service_tier: flex}%s}\n"
    assert problems(two % ", id: groq/flex") == []
    assert "the deployment id 'groq/kimi-k3' is taken (line 7)" in problems(two % "")[0]


def test_a_key_may_be_allowed_what_an_open_provider_serves() -> None:
    text = GOOD.replace("groq: {}", "groq: {any_model: true}")
    key = f"auth: {{keys: [{{name: a, key: 'sha256:{'0' * 64}', models: [groq/llama]}}]}}\n"
    assert problems(text + key) == []
    assert "unknown model or route 'groq/llama'" in problems(GOOD + key)[0]


@pytest.mark.parametrize("text", ["version: 1\n", "version: 1\nproviders: {groq: }\n"])
def test_a_gateway_that_can_serve_nothing_is_a_mistake(text: str) -> None:
    assert problems(text) == ["c.yaml:1: models: nothing could be served: add models, or any_model: true to a provider"]


@pytest.mark.parametrize(
    ("provider", "says"),
    [
        ("base_url: api.example.com/v1", "must begin with http:// or https://"),
        ("base_url: 'https://'", "must name a valid host"),
        ("base_url: 'https://h:99999/v1'", "valid host and port"),
        ("base_url: 'https://u:p@h/v1'", "must have no user name or password"),
        ("base_url: 'https://h/v1?x=1'", "must have no ?query"),
        ("base_url: 'https://h/v1/chat/completions'", "must end before /chat/completions"),
        ("base_url: 'https://h h/v1'", "must be a URL of printable ASCII without spaces"),
        ("proxy: 'https://p:1'", "must begin with http://"),
        ("proxy: 'socks5h://p:1'", "SOCKS proxies are not supported"),
        ("headers: {'X A': b}", "is no name that an HTTP header can have"),
        ("headers: {host: b}", "may not be set"),
        ("headers: {Content-Length: '1'}", "may not be set"),
        ("headers: {X-A: 1}", "must be text; put it in quotes"),
        ("headers: {X-A: \"a\\r\\nB: c\"}", "holds a line break"),
        ("headers: {X-A: a, x-a: b}", "names a header twice"),
        ("failover_on: [200]", "must be at least 400"),
        ("failover_on: 400", "must be a list"),
        ("api_key: 5", "must be a key"),
        ("api_key: \"a\\nb\"", "holds a line break"),
        ("dialect: opnai", "did you mean 'openai'?"),
        ("max_parallel: 0", "must be at least 1"),
        ("timeouts: {ttft: 5s}", "is not a setting; allowed: connect"),
        ("preset: {a: b}", "must be text"),
        ("preset: groqq", "unknown preset 'groqq'; did you mean 'groq'?"),
    ],
)  # fmt: skip
def test_a_wrong_provider_setting_is_one_problem(provider: str, says: str) -> None:
    found = problems(GOOD.replace("groq: {}", f"groq: {{{provider}}}"))
    assert len(found) == 1
    assert found[0].startswith("c.yaml:3: providers.groq")
    assert says in found[0]


@pytest.mark.parametrize(
    ("deployment", "says"),
    [
        ("weight: 0", "must be more than 0"),
        ("weight: .nan", "must be a finite number"),
        ("price: {input: -1}", "must be at least 0"),
        ("price: 5", "must be a mapping"),
        ("context: 128k", "must be a whole number"),
        ("features: tools", "must be a list"),
        ("body: {model: x}", "may not set model"),
        ("body: [x]", "must be a mapping"),
        ("id: 'a b'", "a name has 1 to 128"),
        ("model: ''", "must be a model's name"),
    ],
)
def test_a_wrong_deployment_setting_is_one_problem(deployment: str, says: str) -> None:
    found = problems(GOOD.replace("provider: groq", f"provider: groq, {deployment}"))
    assert len(found) == 1
    assert found[0].startswith("c.yaml:7: models.kimi-k3.deployments[0]")
    assert says in found[0]


def test_a_name_that_cannot_be_one_is_told_with_its_line() -> None:
    text = GOOD.replace("  groq: {}", "  groq: {}\n  'ha ha': {base_url: http://h/v1}")
    assert problems(text)[0].startswith("c.yaml:4: providers.'ha ha': a name has 1 to 64 letters")
