"""Folders that cannot be used, damaged databases, databases of another version."""

import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gateway.config.state_folder import StateFolder
from gateway.core.errors import ConfigError
from gateway.core.ports import Hour
from gateway.stores.opening import open_folder
from gateway.stores.sqlite import SqliteState
from tests.stores.records import CREATED, eventually, latest, numbered, stored

HOUR = CREATED // 3600


def filled(folder: Path, records: int = 300) -> Path:
    """A database that was closed properly."""
    state = SqliteState(folder, wall=lambda: CREATED)
    for number in range(records):
        state.record(numbered(number))
    state.keep([Hour(f"p/m{number}", HOUR, bytes(400)) for number in range(200)], {"p/m0": b"learnt"})
    state.close()
    return latest(folder)


def works(folder: Path) -> None:
    """A gateway that starts now stores and finds."""
    state = SqliteState(folder)
    state.record(numbered(9000))
    state.close()
    state = SqliteState(folder)
    assert asyncio.run(state.find("gen-9000")) is not None
    state.close()


def shown(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b"this is no database\n" * 1000),
        lambda file: file.write_bytes(file.read_bytes()[:100] + bytes(4000) + file.read_bytes()[4100:]),
        lambda file: file.write_bytes(file.read_bytes()[: len(file.read_bytes()) // 2]),
    ],
    ids=["no database", "empty schema", "half"],
)
def test_a_damaged_database_is_put_aside_and_a_new_one_begun(
    tmp_path: Path, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    file = filled(tmp_path)
    damage(file)
    content = file.read_bytes()
    works(tmp_path)
    assert shown(tmp_path) == ["lock", "state-1.db.damaged", "state-2.db"]
    assert (tmp_path / "state-1.db.damaged").read_bytes() == content
    assert "is damaged" in caplog.text
    assert "put aside as state-1.db.damaged" in caplog.text


def test_only_the_latest_damaged_database_is_kept(tmp_path: Path) -> None:
    for _ in range(3):
        filled(tmp_path, 3).write_bytes(b"broken" * 1000)
    works(tmp_path)
    assert shown(tmp_path) == ["lock", "state-3.db.damaged", "state-4.db"]


def test_tables_that_are_not_the_gateways_are_put_aside_too(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state-7.db")) as connection:
        connection.execute("CREATE TABLE other (x)")
    works(tmp_path)
    assert shown(tmp_path) == ["lock", "state-7.db.damaged", "state-8.db"]


@pytest.mark.parametrize("statement", ["DROP TABLE hours", "DROP TABLE meta", "UPDATE meta SET value = 5"])
def test_missing_tables_are_damage(tmp_path: Path, statement: str) -> None:
    with closing(sqlite3.connect(filled(tmp_path))) as connection:
        connection.execute(statement)
        connection.commit()
    works(tmp_path)
    assert shown(tmp_path) == ["lock", "state-1.db.damaged", "state-2.db"]


def test_damage_that_shows_only_in_use_is_put_aside_and_the_batch_is_not_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = filled(tmp_path, 3000)
    first, second = SqliteState(tmp_path, flush_s=0.01), SqliteState(tmp_path, flush_s=0.01)
    # Left open to the end: closing a file takes the locks away that this process has on it.
    descriptor = os.open(file, os.O_RDWR)
    os.pwrite(descriptor, b"\xa5" * (file.stat().st_size - 4096), 4096)
    first.record(numbered(9001))
    eventually(lambda: stored(tmp_path) == {"gen-9001"})
    second.record(numbered(9002))
    eventually(lambda: stored(tmp_path) == {"gen-9001", "gen-9002"})
    assert asyncio.run(first.find("gen-9002")) is not None
    first.close()
    second.close()
    os.close(descriptor)
    assert [name for name in shown(tmp_path) if not name.endswith(("-wal", "-shm"))] == [
        "lock", "state-1.db.damaged", "state-2.db"
    ]  # fmt: skip
    assert (first.dropped, second.dropped) == (0, 0)
    assert "is damaged" in caplog.text


@pytest.mark.parametrize("seed", range(12))
def test_whatever_byte_is_wrong_the_gateway_starts_reads_and_stores(tmp_path: Path, seed: int) -> None:
    file = filled(tmp_path)
    rng = random.Random(seed)
    content = bytearray(file.read_bytes())
    for _ in range(rng.choice([1, 20, 2000])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    file.write_bytes(content)
    try:
        state = SqliteState(tmp_path, flush_s=0.01, wall=lambda: CREATED)
    except ConfigError:
        # Only the byte that says which version it is.
        assert content[60:64] > b"\0\0\0\1"
        return
    hours, learnt = state.remembered()
    assert len(hours) <= 200
    assert len(learnt) <= 1
    state.record(numbered(9000))
    eventually(lambda: "gen-9000" in stored(tmp_path))
    state.close()


def test_a_database_of_a_later_version_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = filled(tmp_path)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 2")
        connection.execute("DROP TABLE learnt")
    content = file.read_bytes()
    with pytest.raises(ConfigError, match=r"state_dir: cannot keep state in .*: it was written by a later version"):
        open_folder(StateFolder(tmp_path, given=True))
    assert open_folder(StateFolder(tmp_path, given=False)) is None
    assert "kept in memory only" in caplog.text
    assert file.read_bytes() == content
    assert shown(tmp_path) == ["lock", "state-1.db"]


def _file(folder: Path) -> None:
    folder.write_text("a file")


def _below_a_file(folder: Path) -> None:
    folder.parent.rmdir()
    folder.parent.write_text("a file")


def _dangling(folder: Path) -> None:
    folder.symlink_to(folder.parent / "nowhere" / "at" / "all")


def _linked_database(folder: Path) -> None:
    folder.mkdir()
    (folder / "state-1.db").symlink_to(folder.parent / "elsewhere.db")


def _linked_lock(folder: Path) -> None:
    folder.mkdir()
    (folder / "lock").symlink_to(folder.parent / "elsewhere")


def _folder_as_database(folder: Path) -> None:
    (folder / "state-1.db").mkdir(parents=True)


@pytest.mark.parametrize(
    "spoil", [_file, _below_a_file, _dangling, _linked_database, _linked_lock, _folder_as_database]
)
def test_a_folder_that_cannot_be_used_is_an_error_where_it_was_given_and_else_a_warning(
    tmp_path: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "above" / "state"
    folder.parent.mkdir()
    spoil(folder)
    with pytest.raises(ConfigError) as refused:
        open_folder(StateFolder(folder, given=True))
    assert str(refused.value).startswith(f"state_dir: cannot keep state in {folder}: ")
    assert open_folder(StateFolder(folder, given=False)) is None
    assert "kept in memory only" in caplog.text
    assert not (folder.parent / "elsewhere.db").exists()
    assert not (folder.parent / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_without_permission_cannot_be_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match="Permission denied"):
        open_folder(StateFolder(tmp_path / "state", given=True))


def test_a_folder_may_be_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    works(tmp_path / "link")
    assert (tmp_path / "real" / "state-1.db").is_file()


def test_names_that_mean_something_in_an_address_are_only_names(tmp_path: Path) -> None:
    folder = tmp_path / "a b?mode=ro#c%20d&é"
    works(folder)
    assert shown(folder) == ["lock", "state-1.db"]
    shutil.rmtree(folder)
    assert list(tmp_path.iterdir()) == []


def test_state_may_stay_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    assert open_folder(None) is None
    assert caplog.text == ""
    assert open_folder(StateFolder(None, given=False)) is None
    assert "HOME is not set" in caplog.text
