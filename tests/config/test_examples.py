"""What users copy from config/ can be served as it stands, given its secrets."""

from pathlib import Path

import pytest

from gateway.config.document import parse, read_text
from gateway.config.load import inspect_text
from gateway.config.resolve import catalog
from gateway.config.schema_problems import section_at
from gateway.config.unsupported import UNSUPPORTED

CONFIG = Path(__file__).parents[2] / "config"
EXAMPLES = sorted([CONFIG / "gateway.yaml", *(CONFIG / "examples").glob("*.yaml")])


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_has_no_problem_and_no_warning(file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a-secret-from-a-file")
    text = read_text(file).replace("file:/run/secrets/openai", "file:secret")
    missing = inspect_text(text, {}, file.name, tmp_path).missing
    hashes = {name: f"sha256:{index:064x}" for index, name in enumerate(missing)}
    found = inspect_text(text, hashes, file.name, tmp_path)
    assert (found.problems, found.warnings) == ((), ())
    assert found.config is not None
    assert catalog(found.config).public


def test_the_examples_of_this_version_are_there() -> None:
    assert {file.name for file in EXAMPLES} >= {"gateway.yaml", "solo.yaml", "team.yaml", "fleet.yaml"}


@pytest.mark.parametrize("path", [(), ("server",), ("auth",), ("defaults",), ("telemetry",)])
def test_the_commented_file_shows_every_setting_that_is_acted_on(path: tuple[str, ...]) -> None:
    section = section_at(path)
    assert section is not None
    values: object = parse(read_text(CONFIG / "gateway.yaml"))[0].values
    for step in path:
        assert isinstance(values, dict)
        values = values[step]
    refused = {row.pattern[-1] for row in UNSUPPORTED if row.pattern[:-1] == path and not row.acted_on}
    assert isinstance(values, dict)
    assert set(section.model_fields) - refused <= set(values)


@pytest.mark.parametrize(
    ("path", "name"),
    [(("providers", "x"), "preset"), (("models", "x", "deployments", 0), "id"), (("routes", "x"), "models"),
     (("auth", "keys", 0), "models")],
)  # fmt: skip
def test_the_commented_file_names_every_setting_of_a_list(path: tuple[str | int, ...], name: str) -> None:
    section = section_at(path)
    assert section is not None
    assert name in section.model_fields
    pattern = tuple("*" if step in ("x", 0) else step for step in path)
    refused = {row.pattern[-1] for row in UNSUPPORTED if row.pattern[:-1] == pattern and not row.acted_on}
    text = read_text(CONFIG / "gateway.yaml")
    missing = [field for field in section.model_fields if field not in refused and f"{field}:" not in text]
    assert missing == []
