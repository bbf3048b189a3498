"""What a chat body needs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.types import Needs
from gateway.routing.needs import needs
from tests.routing.fleet import PATIENT

TEXT = {"role": "user", "content": "x" * 400}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"messages": [TEXT]}, Needs(prompt_tokens=100)),
        ({"messages": [TEXT, {"content": [{"type": "text", "text": "y" * 40}]}]}, Needs(prompt_tokens=110)),
        ({"messages": [{"content": [{"type": "image_url", "image_url": {"url": "data:" + "A" * 9999}}]}]},
         Needs(vision=True)),
        ({"messages": [{"content": [{"type": "input_image"}]}, TEXT]}, Needs(prompt_tokens=100, vision=True)),
        ({"messages": [TEXT], "max_tokens": 50}, Needs(prompt_tokens=100, max_tokens=50)),
        ({"max_tokens": 50, "max_completion_tokens": 70}, Needs(max_tokens=70)),
        ({"max_tokens": None, "max_completion_tokens": 7.0}, Needs(max_tokens=7)),
        ({"max_tokens": True}, Needs()),
        ({"max_tokens": -1}, Needs()),
        ({"tools": []}, Needs()),
        ({"tools": None}, Needs()),
        ({"tools": [{"type": "function"}]}, Needs(prompt_tokens=5, tools=True)),
        ({"functions": [{"name": "old"}]}, Needs(prompt_tokens=4, tools=True)),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, Needs(json_schema=True)),
        ({"response_format": {"type": "json_object"}}, Needs()),
        ({"reasoning_effort": "low"}, Needs(reasoning=True)),
        ({"reasoning_effort": "none"}, Needs()),
        ({"reasoning_effort": None}, Needs()),
        ({"reasoning": {"effort": "high"}}, Needs(reasoning=True)),
        ({"reasoning": {"effort": "none"}}, Needs()),
        ({"reasoning": {"enabled": False}}, Needs()),
        ({"thinking": {"type": "enabled", "budget_tokens": 1000}}, Needs(reasoning=True)),
        ({"thinking": {"type": "disabled"}}, Needs()),
        ({"thinking": True}, Needs(reasoning=True)),
    ],
)  # fmt: skip
def test_needs_are_read_from_the_body(body: dict[str, Any], expected: Needs) -> None:
    assert needs(body) == expected


def test_the_arguments_of_past_tool_calls_are_part_of_the_prompt() -> None:
    past = {"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": "z" * 4000}}]}
    assert needs({"messages": [past]}).prompt_tokens >= 1000


def test_a_body_nested_beyond_measure_is_still_read() -> None:
    deep: list[Any] = ["x"]
    for _ in range(2000):
        deep = [deep]
    assert needs({"messages": [{"content": deep, "tool_calls": deep}], "tools": deep}).tools


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["none", "image_url"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["content", "type", "text", "effort", "role", "tool_calls"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    [
        "messages",
        "tools",
        "functions",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "reasoning",
        "thinking",
    ]
)


@PATIENT
@given(st.dictionaries(FIELDS, JSON, max_size=6))
def test_no_json_makes_it_raise(body: dict[str, Any]) -> None:
    read = needs(body)
    assert read.prompt_tokens >= 0
    assert read.max_tokens is None or read.max_tokens > 0
