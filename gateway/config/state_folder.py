"""Where state is kept that outlives the process: the folder that was given, else the user's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.config.schema import STATE_OFF, Config

NAME = "speed-gateway"


@dataclass(frozen=True, slots=True)
class StateFolder:
    """`path` None: there is no user's folder. `given`: the configuration names it, so it must be usable."""

    path: Path | None
    given: bool


def state_folder(config: Config, environ: Mapping[str, str], platform: str) -> StateFolder | None:
    """The folder of a loaded configuration; None where state is to stay in memory. `platform` as `sys.platform`."""
    if config.state_dir == STATE_OFF:
        return None
    if config.state_dir is not None:
        return StateFolder(Path(config.state_dir), given=True)
    return StateFolder(_users_folder(environ, platform), given=False)


def _users_folder(environ: Mapping[str, str], platform: str) -> Path | None:
    """$XDG_STATE_HOME, else the system's usual place in the home folder. Relative ones do not count."""
    home = home_folder(environ)
    if platform == "darwin":
        return None if home is None else home / "Library" / "Application Support" / NAME
    named = Path(environ.get("XDG_STATE_HOME", ""))
    if named.is_absolute():
        return named / NAME
    return None if home is None else home / ".local" / "state" / NAME


def home_folder(environ: Mapping[str, str]) -> Path | None:
    """$HOME, None where it is not set or relative."""
    home = Path(environ.get("HOME", ""))
    return home if home.is_absolute() else None


def resolved(given: str, folder: Path, environ: Mapping[str, str]) -> str:
    """A `state_dir` as an absolute path: `~` is the home folder, relative ones start at `folder`."""
    if given == STATE_OFF:
        return given
    home = home_folder(environ)
    if home is not None and (given == "~" or given.startswith("~/")):
        return str(home / given[2:])
    return str((folder / given).absolute())


def needs_home(given: object, environ: Mapping[str, str]) -> bool:
    """Whether it is meant from a home folder that is not known."""
    return isinstance(given, str) and given.startswith("~") and home_folder(environ) is None
