"""Where `state_dir` leads: paths, `~`, the user's own folder, and values that are no folder."""

from pathlib import Path

import pytest

from gateway.config.load import find, inspect_text
from gateway.config.state_folder import StateFolder, state_folder
from tests.config.yaml_text import ENVIRON, GOOD

HOME = {"HOME": "/users/ada"}
CWD = Path("/etc/gateway")


def folder_of(setting: str | None, environ: dict[str, str], platform: str = "linux") -> StateFolder | None:
    text = GOOD if setting is None else f"{GOOD}state_dir: {setting}\n"
    found = inspect_text(text, {**ENVIRON, **environ}, "gateway.yaml", CWD)
    assert (found.problems, found.warnings) == ((), ())
    assert found.config is not None
    return state_folder(found.config, environ, platform)


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("/var/lib/gateway", "/var/lib/gateway"),
        ("state", "/etc/gateway/state"),
        ("./off", "/etc/gateway/off"),
        ("'~'", "/users/ada"),
        ("~/state", "/users/ada/state"),
        ("a/~/b", "/etc/gateway/a/~/b"),
        ("${DIR}/state", "/srv/state"),
        ("'zwei Wörter'", "/etc/gateway/zwei Wörter"),
    ],
)
def test_a_folder_that_is_given(setting: str, path: str) -> None:
    assert folder_of(setting, {**HOME, "DIR": "/srv"}) == StateFolder(Path(path), given=True)


@pytest.mark.parametrize(
    ("environ", "platform", "path"),
    [
        (HOME, "linux", "/users/ada/.local/state/speed-gateway"),
        ({**HOME, "XDG_STATE_HOME": "/state"}, "linux", "/state/speed-gateway"),
        ({"XDG_STATE_HOME": "/state"}, "linux", "/state/speed-gateway"),
        ({**HOME, "XDG_STATE_HOME": "relative"}, "linux", "/users/ada/.local/state/speed-gateway"),
        ({**HOME, "XDG_STATE_HOME": ""}, "linux", "/users/ada/.local/state/speed-gateway"),
        (HOME, "darwin", "/users/ada/Library/Application Support/speed-gateway"),
        ({}, "linux", None),
        ({"HOME": ""}, "linux", None),
        ({"HOME": "relative"}, "linux", None),
        ({}, "darwin", None),
    ],
)
@pytest.mark.parametrize("setting", [None, "null"])
def test_the_users_own_folder_where_none_is_given(
    setting: str | None, environ: dict[str, str], platform: str, path: str | None
) -> None:
    assert folder_of(setting, environ, platform) == StateFolder(None if path is None else Path(path), given=False)


def test_off_keeps_state_in_memory() -> None:
    assert folder_of("off", HOME) is None
    assert folder_of("'off'", {}) is None
    assert folder_of("${WHERE:-off}", HOME) is None


def test_automatic_mode_has_the_users_own_folder(tmp_path: Path) -> None:
    found = find(None, ENVIRON, tmp_path)
    assert state_folder(found.config, HOME, "linux") == StateFolder(
        Path("/users/ada/.local/state/speed-gateway"), given=False
    )


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("none", "must be the path of a folder, or off (./none is a folder of that name)"),
        ("memory", "or off"),
        ("''", "must be the path of a folder, or off"),
        ("false", "must be"),
        ("5", "must be"),
        ("[a]", "must be"),
        ('"a\\nb"', "must be the path of a folder"),
        ("'~bob/state'", "another user's home"),
        ("~/state", "HOME is not set"),
    ],
)
def test_what_is_no_folder_is_refused_with_its_line(setting: str, says: str) -> None:
    text = f"{GOOD}state_dir: {setting}\n"
    found = inspect_text(text, ENVIRON, "gateway.yaml", CWD)
    assert len(found.problems) == 1
    line = len(text.splitlines())
    assert found.problems[0].startswith(f"gateway.yaml:{line}: state_dir: ")
    assert says in found.problems[0]
