"""State as the configuration wants it: in a folder, or in memory only."""

import logging

from gateway.config.state_folder import StateFolder
from gateway.core.errors import ConfigError
from gateway.stores.sqlite import SqliteState

log = logging.getLogger("gateway.stores")


def open_folder(folder: StateFolder | None) -> SqliteState | None:
    """The state in this folder; None where it stays in memory.

    Raises ConfigError where a folder that was given cannot be used; the user's own is done without, with a warning.
    """
    if folder is None:
        return None
    if folder.path is None:
        log.warning("HOME is not set: records and statistics are kept in memory only; state_dir names a folder")
        return None
    try:
        return SqliteState(folder.path)
    except ConfigError as error:
        if folder.given:
            raise
        log.warning("%s; records and statistics are kept in memory only (state_dir: off says so)", error)
        return None
