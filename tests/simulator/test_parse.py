"""Scripts are read strictly: every mistake is named, and what is shown reads back the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import ConfigError
from gateway.simulator import Load, Reasoning, Script, Ttft, Window
from gateway.simulator.faults import FAULTS, Cut, Fault, Stall, Status
from gateway.simulator.parse import read_changes, read_live, read_script, show


def problems(script: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_script(script)
    return caught.value.problems


MISTAKES: dict[str, tuple[object, str]] = {
    "no mapping": (5, "5 is not a mapping with api_key, cached_share"),
    "unknown key": ({"tsp": 5}, "tsp: is not known here; did you mean tps?"),
    "speed of zero": ({"tps": 0}, "tps: 0 is not a number from 0.001 to 1e+09"),
    "speed as text": ({"tps": "fast"}, "tps: 'fast' is not a number"),
    "true as number": ({"ttft": True}, "ttft: True is not a number of seconds (or 80ms, 5s, 2m) from 0 to 86400"),
    "not a number": ({"ttft": float("nan")}, "ttft: nan is not a number"),
    "half a token": ({"output_tokens": 1.5}, "output_tokens: 1.5 is not a whole number"),
    "share over one": ({"jitter": "120%"}, "jitter: '120%' is not a number (or 5%) from 0 to 1"),
    "wrong unit": ({"ttft": "5%"}, "ttft: '5%' is not"),
    "missing median": ({"ttft": {"sigma": 1}}, "ttft.median: is missing"),
    "load as number": ({"load": 5}, "load: 5 is not a mapping with k"),
    "yes as text": ({"tool": "yes"}, "tool: 'yes' is not true or false"),
    "unknown alphabet": ({"text": "klingon"}, "text: 'klingon' is not one of ascii, wide"),
    "unknown fault": ({"faults": ["cutt"]}, "faults[0].kind: 'cutt' is not a kind of fault; did you mean cut?"),
    "fault without kind": ({"faults": [{"share": 1}]}, "faults[0]: {'share': 1} is not a fault: a kind, or a mapping"),
    "unknown part": ({"fault": {"kind": "cut", "after": 1}}, "faults.after: is not known here"),
    "code": ({"fault": {"kind": "status", "code": 99}}, "faults.code: 99 is not a whole number from 200 to 599"),
    "fault twice": ({"fault": "cut", "faults": []}, "has both fault and faults; give one"),
    "schedule as mapping": ({"schedule": {"at": 1}}, "schedule: {'at': 1} is not a list"),
    "window without set": ({"schedule": [{"at": 1}]}, "schedule[0].set: is missing"),
    "window too long": (
        {"schedule": [{"at": 1, "for": 9, "every": 5, "set": {}}]},
        "schedule[0].for: must be given and at most",
    ),
    "window of name": ({"schedule": [{"at": 1, "set": {"name": "x"}}]}, "schedule[0].set.name: is not known here"),
    "outage": ({"outage": "maybe"}, "outage: 'maybe' is not one of refuse, reset"),
    "port": ({"port": 70000}, "port: 70000 is not a whole number from 0 to 65535"),
    "name": ({"name": "a b"}, "name: 'a b' may have letters"),
    "header": ({"headers": {"x": "a\r\nb: c"}}, "headers.x: is not a header"),
    "models": ({"models": [1]}, "models[0]: 1 is not a text"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_named_with_its_path(case: str) -> None:
    given, expected = MISTAKES[case]
    assert [problem for problem in problems(given) if problem.startswith(expected)], problems(given)


def test_all_mistakes_are_told_together() -> None:
    assert (
        len(problems({"tps": 0, "ttft": -1, "x": 1, "faults": ["y", {"kind": "cut", "z": 1}], "load": {"k": 0}})) == 6
    )


def test_numbers_may_have_units() -> None:
    script = read_script(
        {"ttft": "80ms", "jitter": "5%", "fault": {"kind": "huge_event", "size": "10MB", "share": "2.5%"}}
    )
    assert (script.ttft, script.jitter) == (0.08, 0.05)
    assert script.faults == (FAULTS["huge_event"](size=10_000_000, share=0.025),)


def test_a_fault_may_be_a_word_a_mapping_or_a_list() -> None:
    assert read_script({"fault": "cut"}).faults == (Cut(),)
    assert read_script({"faults": {"kind": "cut"}}).faults == (Cut(),)
    assert read_script({"faults": ["cut", {"kind": "stall"}]}).faults == (Cut(), Stall())


def test_a_request_may_not_change_what_the_provider_is() -> None:
    assert read_changes({"tps": 5, "fault": "cut"}) == {"tps": 5.0, "faults": (Cut(),)}
    for key in ("name", "port", "api_key", "models", "schedule", "outage", "seed"):
        with pytest.raises(ConfigError, match=f"sim.{key}: is not known here"):
            read_changes({key: None})


def test_the_control_endpoint_may_change_all_but_name_and_port() -> None:
    assert read_live({"seed": 4, "api_key": None, "outage": "reset"}) == {"seed": 4, "api_key": None, "outage": "reset"}
    with pytest.raises(ConfigError, match="port: is not known here"):
        read_live({"port": 1})


SECONDS = st.floats(0, 86_400)
FAULT = st.one_of(st.sampled_from([kind() for kind in FAULTS.values()]), st.builds(Status, share=st.floats(0, 1)))
SCRIPTS = st.builds(
    Script,
    ttft=st.one_of(SECONDS, st.builds(Ttft, SECONDS, st.floats(0, 9), SECONDS)),
    tps=st.floats(0.001, 1e9),
    load=st.one_of(st.none(), st.builds(Load, st.floats(0.001, 1e6))),
    reasoning=st.one_of(st.none(), st.builds(Reasoning, st.integers(0, 99), st.booleans(), st.none() | SECONDS)),
    faults=st.lists(FAULT, max_size=3).map(tuple),
    schedule=st.lists(st.builds(Window, SECONDS, FAULT.map(lambda fault: {"faults": (fault,)})), max_size=2).map(tuple),
    outage=st.sampled_from([None, "refuse", "reset"]),
    seed=st.integers(),
)


@given(SCRIPTS)
def test_what_is_shown_reads_back_to_the_same_script(script: Script) -> None:
    shown: dict[str, Any] = show(script)
    assert read_script(shown) == script


def test_every_fault_has_a_share() -> None:
    assert all(isinstance(kind(share=0.5), Fault) for kind in FAULTS.values())
