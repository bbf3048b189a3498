"""Keys are hashed, secrets are told to nobody."""

import hashlib
from pathlib import Path

import pytest

from gateway.config.load import read
from tests.config.yaml_text import ENVIRON, GOOD, inspected, problems, with_server


def test_keys_are_kept_as_their_hashes() -> None:
    literal, from_environment = "literal-key-0123456789", "environment-key-0123456789"
    digest = hashlib.sha256(b"a third key, known by its hash").hexdigest()
    text = GOOD + (
        "auth:\n  keys:\n"
        f"    - {{name: a, key: {literal}}}\n"
        '    - {name: b, key: "${B}"}\n'
        f"    - {{name: c, key: 'sha256:{digest.upper()}'}}\n"
        '  admin_keys: ["${B}"]\n'
    )
    found = inspected(text, {**ENVIRON, "B": from_environment})
    assert found.config is not None
    assert [key.key for key in found.config.auth.keys] == [
        hashlib.sha256(literal.encode()).hexdigest(),
        hashlib.sha256(from_environment.encode()).hexdigest(),
        digest,
    ]
    assert found.config.auth.admin_keys == (hashlib.sha256(from_environment.encode()).hexdigest(),)
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("c.yaml:10: auth.keys[0].key: is a key in the file itself; write the sha256:")


@pytest.mark.parametrize(
    "key", ["fifteen-chars-k", "sha256:abc", "SHA256:" + "0" * 64, "with spaces in the key", "k" * 513]
)
def test_what_cannot_be_a_key_is_refused_without_repeating_it(key: str) -> None:
    told = problems(GOOD + f"auth: {{keys: [{{name: a, key: '{key}'}}]}}\n")
    assert len(told) == 1
    assert key not in told[0]


def test_the_same_key_twice_is_told() -> None:
    text = GOOD + 'auth: {keys: [{name: a, key: "${B}"}, {name: b, key: "${B}"}]}\n'
    assert "auth.keys[1].key: is the same key" in problems(text, {**ENVIRON, "B": "0123456789abcdefgh"})[0]


# Nobody may read either, wherever it was put. The second does not even look like a key.
SECRET = "sk-Zq7vN2xK9mB4tR8wL5pH3c"
ENVIRONMENT_SECRET = "correct-horse-battery-staple"


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("groq: {}", 'groq: {api_key: "${S}", colour: "${S}"}'),
        GOOD.replace("groq: {}", f"groq: {{api_key: '{SECRET}', rpm: 5, headers: {{X-Key: '{SECRET}'}}}}"),
        GOOD.replace("groq: {}", f"groq: {{api_key: ['{SECRET}']}}"),
        GOOD.replace("groq: {}", f"groq: {{api_key: {{{SECRET}: x}}}}"),
        GOOD.replace("groq: {}", 'groq: {base_url: "${S}"}'),
        GOOD.replace("groq: {}", f"groq: {{base_url: 'https://user:{SECRET}@host/v1'}}"),
        GOOD.replace("groq: {}", f"groq: {{proxy: 'http://user:{SECRET}@host:1/x'}}"),
        GOOD.replace("provider: groq", 'provider: "${S}"'),
        GOOD + 'defaults: {strategy: "${S}"}\n',
        GOOD + f"defaults: {{strategy: '{SECRET}'}}\n",
        GOOD + 'routes: {fast: {models: ["${S}"], fallback: ["${S}"]}}\n',
        GOOD + f"auth: {{keys: [{{name: a, key: '{SECRET}', models: ['{SECRET}']}}], admin_keys: ['{SECRET}', 5]}}\n",
        GOOD + f"auth: {{keys: [{{name: '{SECRET}', key: 1}}]}}\n",
        with_server('{host: "${S}", port: "${S}", max_body: "${S}", cors_origins: ["${S}"]}'),
        GOOD + f"state: 'redis://:{SECRET}@host/0'\n",
        GOOD + f"{SECRET}: 1\n",
        GOOD + f"auth: '{SECRET}'\n",
    ],
)
def test_a_secret_is_in_no_message(text: str) -> None:
    found = inspected(text, {**ENVIRON, "S": ENVIRONMENT_SECRET})
    told = "\n".join((*found.problems, *found.missing, *found.warnings))
    assert found.problems
    assert SECRET not in told
    assert ENVIRONMENT_SECRET not in told


def test_a_secret_is_in_no_repr(tmp_path: Path) -> None:
    text = GOOD.replace(
        "groq: {}",
        'groq: {api_key: "${S}", headers: {X-Key: "${S}"}, proxy: "http://u:${S}@p:1"}',
    ).replace("provider: groq", 'provider: groq, body: {user: "${S}"}')
    file = tmp_path / "c.yaml"
    file.write_text(text)
    found = read(file, {"S": SECRET})
    assert found.config.providers["groq"].api_key is not None
    assert SECRET not in repr(found)
    assert SECRET not in str(found.config)
