"""Warnings."""

import pytest

from tests.config.yaml_text import GOOD, inspected, with_server


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            GOOD.replace("groq: {}", "groq: {}\n  house: {base_url: http://h/v1}"),
            "c.yaml:4: providers.house: has no effect",
        ),
        (GOOD.replace("provider: groq", "provider: groq, weight: 2"), "weight: has no effect"),
        (GOOD.replace("groq: {}", "groq: {failover_on: [400, 503]}"), "failover_on[1]: has no effect: 503"),
        (with_server("{host: 0.0.0.0, allow_open: true}"), "server.host: only loopback names and this machine's own"),
        (GOOD + f"auth: {{admin_keys: ['sha256:{'0' * 64}']}}\n", "auth.admin_keys: has no effect: without auth.keys"),
        (with_server("{metrics_listen: '0.0.0.0:9090'}"), "server.metrics_listen: can be reached from a network"),
        (with_server("{allow_open: true}"), "server.allow_open: has no effect"),
        (GOOD + "defaults: {timeouts: {ttft: 10m, total: 5m}}\n", "defaults.timeouts.ttft: has no effect"),
        (GOOD.replace("groq: {}", "groq: {base_url: 'http://api.example.com'}"), "sends the key unencrypted"),
        (GOOD.replace("groq: {}", "groq: {api_key: gsk-literal}"), "api_key: is a secret in the file itself"),
    ],
)
def test_what_works_but_should_be_looked_at_is_a_warning(text: str, says: str) -> None:
    found = inspected(text)
    assert found.problems == ()
    assert len(found.warnings) == 1
    assert says in found.warnings[0]


def test_a_key_over_plain_http_inside_a_private_network_is_fine() -> None:
    for host in ("10.0.0.5", "127.0.0.1", "[::1]", "vllm", "vllm.default.svc", "box.local", "192.168.1.9"):
        text = GOOD.replace("groq: {}", f'groq: {{base_url: "http://{host}:8000/v1"}}')
        assert inspected(text).warnings == ()


@pytest.mark.parametrize("listen", ["127.0.0.1:9090", "[::1]:9090", "localhost:9090"])
def test_metrics_on_loopback_are_fine(listen: str) -> None:
    assert inspected(with_server(f"{{metrics_listen: '{listen}'}}")).warnings == ()
