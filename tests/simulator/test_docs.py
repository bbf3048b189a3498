"""docs/simulator.md names every key of a script and every fault with its keys, and its examples are valid."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from gateway.simulator import Script, read_fleet
from gateway.simulator.faults import FAULTS

PAGE = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
ROWS = {row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", PAGE, re.MULTILINE)}


@pytest.mark.parametrize("key", [entry.name for entry in fields(Script) if entry.name != "name"])
def test_every_key_of_a_script_has_a_row(key: str) -> None:
    assert key in ROWS


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_has_a_row_with_its_keys(kind: str) -> None:
    keys = {entry.name for entry in fields(FAULTS[kind])} - {"share"}
    assert keys <= set(re.findall(r"`(\w+)`", ROWS[kind][0]))


def test_the_fleet_file_of_the_page_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    assert [script.name for script in read_fleet(file)] == ["lab", "moth"]
