"""The request as a deployment wants it: what is removed, renamed, merged and asked for."""

from copy import deepcopy
from types import MappingProxyType
from typing import Any

import orjson
import pytest

from gateway.core.types import Call, Caller, Deployment, Json, Needs, Provider, Quirks, Target, Timeouts
from gateway.providers.dialects import DIALECTS

DIALECT = DIALECTS["openai"]
MESSAGES = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hi"}]


def deployment(quirks: Quirks | None = None, body: Any = None) -> Deployment:
    provider = Provider(name="p", base_url="http://p.example/v1", quirks=quirks or Quirks())
    return Deployment(id="p/m", provider=provider, model="m", upstream_model="vendor/m-1", body=body or {})


def call(body: Json, *, stream: bool = True, surface: str = "chat.completions") -> Call:
    target = Target("m", (), "order", Timeouts())
    return Call(
        id="r", surface=surface, path="/v1/chat/completions", body=body, stream=stream, target=target,
        caller=Caller(), needs=Needs(), started=0.0, received=0.0,
    )  # fmt: skip


def built(
    body: Json, quirks: Quirks | None = None, extra: Any = None, *, stream: bool = True
) -> tuple[Json, list[str]]:
    before = deepcopy(body)
    _, sent, dropped = DIALECT.request(call(body, stream=stream), deployment(quirks, extra))
    assert body == before, "the caller's body was changed"
    return sent, list(dropped)


@pytest.mark.parametrize(
    ("surface", "path"),
    [
        ("chat.completions", "/chat/completions"),
        ("completions", "/completions"),
        ("fim.completions", "/fim/completions"),
    ],
)
def test_the_path_follows_the_surface(surface: str, path: str) -> None:
    assert DIALECT.request(call({}, surface=surface), deployment())[0] == path


def test_the_model_becomes_the_upstreams_own_and_routing_fields_stay_here() -> None:
    sent, dropped = built({"model": "fast", "messages": MESSAGES, "provider": {"sort": "price"}, "models": ["a"]})
    assert sent == {"model": "vendor/m-1", "messages": MESSAGES, "stream_options": {"include_usage": True}}
    assert dropped == []


def test_unknown_fields_pass_untouched() -> None:
    body = {"model": "m", "stream": True, "seed": None, "tools": [], "x_vendor": {"deep": [1, {"a": None}]}}
    sent, _ = built(body, stream=False)
    assert sent == {**body, "model": "vendor/m-1"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, {"include_usage": True}),
        ({}, {"include_usage": True}),
        ({"include_usage": False}, {"include_usage": True}),
        ({"continuous_usage_stats": True}, {"continuous_usage_stats": True, "include_usage": True}),
        ("nonsense", "nonsense"),
    ],
)
def test_usage_is_asked_for_on_streams(options: Any, expected: Any) -> None:
    assert built({"stream_options": options})[0]["stream_options"] == expected


def test_usage_is_not_asked_for_where_it_is_refused_or_not_streamed() -> None:
    assert built({}, stream=False)[0] == {"model": "vendor/m-1"}
    quirks = Quirks(include_usage=False)
    assert built({}, quirks) == ({"model": "vendor/m-1"}, [])
    kept, dropped = built({"stream_options": {"include_usage": True, "other": 1}}, quirks)
    assert (kept["stream_options"], dropped) == ({"other": 1}, ["stream_options.include_usage"])
    sent, dropped = built({"stream_options": {"include_usage": True}}, Quirks(refuses=frozenset({"stream_options"})))
    assert ("stream_options" in sent, dropped) == (False, ["stream_options"])


def test_refused_parameters_are_removed_and_reported() -> None:
    sent, dropped = built({"seed": 1, "logit_bias": {}, "top_p": 1}, Quirks(refuses=frozenset({"seed", "logit_bias"})))
    assert ("seed" in sent, "logit_bias" in sent, sent["top_p"]) == (False, False, 1)
    assert dropped == ["logit_bias", "seed"]


def test_parameters_are_renamed_and_nothing_is_lost_unreported() -> None:
    quirks = Quirks(renames={"max_completion_tokens": "max_tokens", "seed": "random_seed"})
    assert built({"max_completion_tokens": 9, "seed": 3}, quirks, stream=False) == (
        {"model": "vendor/m-1", "max_tokens": 9, "random_seed": 3},
        [],
    )
    sent, dropped = built({"max_completion_tokens": 9, "max_tokens": 5}, quirks)
    assert (sent["max_tokens"], "max_completion_tokens" in sent, dropped) == (5, False, ["max_completion_tokens"])
    sent, dropped = built({"max_completion_tokens": 9, "max_tokens": None}, quirks)
    assert (sent["max_tokens"], dropped) == (9, [])
    assert "max_completion_tokens" in built({"max_completion_tokens": 9})[0]


def test_the_developer_speaks_as_system_where_that_role_is_unknown() -> None:
    assert built({"messages": MESSAGES})[0]["messages"] == MESSAGES
    sent, _ = built({"messages": [*MESSAGES, "odd"]}, Quirks(developer_role=False))
    assert sent["messages"] == [{"role": "system", "content": "be brief"}, MESSAGES[1], "odd"]


def test_the_deployments_body_is_merged_key_by_key_and_wins() -> None:
    extra = MappingProxyType(
        {"service_tier": "priority", "options": MappingProxyType({"a": MappingProxyType({"y": 2})}), "stop": ("x",)}
    )
    sent, _ = built({"service_tier": "auto", "options": {"a": {"x": 1}, "b": 2}, "stop": ["z"]}, None, extra)
    assert sent["service_tier"] == "priority"
    assert sent["options"] == {"a": {"x": 1, "y": 2}, "b": 2}
    assert sent["stop"] == ["x"]
    assert orjson.loads(orjson.dumps(sent)) == sent


def test_what_is_sent_shares_no_merged_object_with_the_configuration() -> None:
    inner = {"a": 1}
    sent, _ = built({}, None, {"options": inner})
    sent["options"]["a"] = 2
    assert inner == {"a": 1}
