"""Fleet files: mistakes with their lines, the demo fleet, and many providers at once."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.simulator import Fleet, Script, read_fleet
from tests.simulator.seen import ask


def test_the_demo_fleet_has_five_characters_on_free_ports() -> None:
    scripts = read_fleet()
    assert [script.name for script in scripts] == ["hare", "fox", "ox", "moth", "wasp"]
    assert {script.port for script in scripts} == {0}


def test_only_some_of_a_fleet_can_be_asked_for() -> None:
    assert [script.name for script in read_fleet(only=["ox", "fox"])] == ["fox", "ox"]
    with pytest.raises(ConfigError, match="bee: is not in the fleet; known: hare, fox, ox, moth, wasp"):
        read_fleet(only=["bee"])


def test_every_mistake_of_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(
        "providers:\n"
        "  a: {tps: 5}\n"
        "  a:\n"
        "    tps: 0\n"
        "    faults:\n"
        "      - {kind: cut, after_tokns: 3}\n"
        "    schedule:\n"
        "      - {at: 5,\n"
        "         set: {tsp: 4}}\n"
        "  b: {name: c}\n"
        "  d: 7\n"
        "extra: 1\n"
    )
    with pytest.raises(ConfigError) as caught:
        read_fleet(file)
    places = {
        problem.removeprefix(f"{file}:").partition(" is")[0].removesuffix(":") for problem in caught.value.problems
    }
    assert places == {
        "3: providers.a",
        "4: providers.a.tps: 0",
        "6: providers.a.faults[0].after_tokns",
        "9: providers.a.schedule[0].set.tsp",
        "10: providers.b.name",
        "11: providers.d: 7",
        "12: extra",
    }


@pytest.mark.parametrize(
    ("text", "line"), [("", 1), ("providers:\n", 1), ("providers:\n  a: [\n", 3), ("- a\n", 1), ("providers: {}\n", 1)]
)
def test_a_file_that_is_no_fleet_is_refused(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_fleet(file)
    assert caught.value.problems[0].startswith(f"{file}:{line}: ")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_fleet(tmp_path / "none.yaml")


def test_an_empty_script_is_all_defaults(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("providers:\n  plain:\n")
    assert read_fleet(file) == (Script(name="plain"),)


def test_a_fleet_runs_all_of_its_providers() -> None:
    async def main() -> None:
        async with Fleet([Script(name="a", ttft=0, tps=1e6), Script(name="b", ttft=0, tps=1e6)]) as fleet:
            assert [(await ask(one)).done for one in fleet] == [True, True]
            assert fleet["a"].port != fleet["b"].port
            assert fleet["a"].stats.requests == 1

    asyncio.run(main())


def test_a_fleet_that_cannot_start_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with Fleet([Script(name="a")]) as running:
            taken = Script(name="b", port=running["a"].port)
            with pytest.raises(OSError, match="in use"):
                await Fleet([Script(name="c"), taken]).__aenter__()

    asyncio.run(main())
