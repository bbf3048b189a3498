"""`gateway check`."""

import json
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.config.presets import presets
from tests.config.yaml_text import GOOD


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty directory and an environment without keys."""
    for preset in presets().values():
        monkeypatch.delenv(preset.key, raising=False)
    monkeypatch.delenv("GATEWAY_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_good_file_is_listed_with_its_deployments(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-never-shown-key")
    (bare / "my.yaml").write_text(GOOD + "routes: {fast: {models: [kimi-k3]}}\n")
    assert main(["check", "my.yaml"]) == 0
    told = capsys.readouterr().out
    assert "source: my.yaml" in told
    assert told.count("groq/kimi-k3") == 2
    assert told.endswith("ok\n")
    assert "never-shown" not in told


def test_every_problem_is_one_line_and_the_exit_code_is_2(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare / "gateway.yaml").write_text("version: 1\nservr: {}\nmodels: {m: {deployments: []}}\n")
    assert main(["check"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["gateway.yaml:2", "gateway.yaml:3", "2 problems"]


def test_missing_secrets_are_named_beside_the_deployments(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare / "gateway.yaml").write_text(GOOD)
    assert main(["check"]) == 2
    told = capsys.readouterr().out
    assert "missing secrets: GROQ_API_KEY\n" in told
    assert "groq/kimi-k3" in told


def test_json_has_all_of_it(bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-never-shown-key")
    text = GOOD.replace("groq: {}", "groq: {any_model: true}\n  spare: {base_url: http://h/v1}")
    (bare / "c.yaml").write_text(text + "state_dir: state\n")
    assert main(["check", "--json", "c.yaml"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "ok": True,
        "source": "c.yaml",
        "problems": [],
        "missing_secrets": [],
        "warnings": ["c.yaml:4: providers.spare: has no effect: no deployment uses this provider"],
        "state_dir": str(bare / "state"),
        "deployments": [
            {"name": "kimi-k3", "kind": "model", "deployment": "groq/kimi-k3", "provider": "groq",
             "upstream_model": "kimi-k3", "price_known": False},
            {"name": "groq/*", "kind": "any model", "deployment": "groq/*", "provider": "groq",
             "upstream_model": "*", "price_known": False},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(("models", "warned"), [(200, False), (210, True)])
def test_more_time_series_than_a_scrape_should_carry_are_warned_of(
    models: int, warned: bool, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"  m{number}: {{deployments: [{{provider: p, model: m{number}}}]}}\n" for number in range(models))
    providers = "providers: {p: {base_url: http://h/v1, api_key: none}}\n"
    (bare / "c.yaml").write_text(f"version: 1\n{providers}models:\n{rows}")
    assert main(["check", "c.yaml"]) == 0
    assert ("time series from the start" in capsys.readouterr().out) == warned


def test_without_a_file_the_keys_in_the_environment_are_the_configuration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check"]) == 2
    assert "`gateway demo`" in capsys.readouterr().out
    monkeypatch.setenv("XAI_API_KEY", "xai-key")
    assert main(["check"]) == 0
    assert "source: automatic (from XAI_API_KEY)" in capsys.readouterr().out


def test_a_name_in_brackets_is_no_markup(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk")
    (bare / "c.yaml").write_text(GOOD.replace("provider: groq", "provider: groq, model: 'a[red]b[/red]'"))
    assert main(["check", "c.yaml"]) == 0
    assert "a[red]b[/red]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "told"),
    [("", "state: /xdg/speed-gateway\n"), ("state_dir: s\n", "/s\n"), ("state_dir: off\n", "state: in memory only\n")],
)
def test_the_state_folder_is_told_and_not_made(
    setting: str, told: str, bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    (bare / "c.yaml").write_text(GOOD + setting)
    assert main(["check", "c.yaml"]) == 0
    assert told in capsys.readouterr().out
    assert [file.name for file in bare.iterdir()] == ["c.yaml"]
