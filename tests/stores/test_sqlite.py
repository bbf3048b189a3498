"""The state database: batches, retention, a disk that fails, two gateways at once, statistics of several runs."""

import asyncio
import logging
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.core.errors import RequestError
from gateway.core.ports import Hour
from gateway.stores.database import MAX_BYTES, PRUNE_ROWS, RETENTION_S, Database, Row
from gateway.stores.folder import open_state
from gateway.stores.sqlite import SqliteState
from tests.stores.records import CREATED, RECORD, eventually, latest, numbered, stored

DAY_S = 86_400
NOW_HOUR = CREATED // 3600


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_state(tmp_path).database
    yield opened
    opened.close()


def rows(first: int, count: int, created: int) -> list[Row]:
    return [Row(f"gen-{number}", created, None, b"x" * 200) for number in range(first, first + count)]


def count(folder: Path, table: str = "records") -> int:
    with closing(sqlite3.connect(latest(folder))) as connection:
        found: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return found


def test_the_folder_and_its_files_are_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "state"
    before = os.umask(0)
    try:
        state = SqliteState(folder)
        state.record(RECORD)
        eventually(lambda: stored(folder) != set())
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
        state.close()
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["lock", "state-1.db", "state-1.db-wal", "state-1.db-shm"], 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_database_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    SqliteState(tmp_path).close()
    latest(tmp_path).chmod(0o644)
    SqliteState(tmp_path).close()
    assert stat.S_IMODE(latest(tmp_path).stat().st_mode) == 0o600


def test_records_are_written_while_the_gateway_runs(tmp_path: Path) -> None:
    state = SqliteState(tmp_path, flush_s=0.01)
    state.record(numbered(1))
    eventually(lambda: stored(tmp_path) == {"gen-1"})
    state.record(numbered(2))
    eventually(lambda: stored(tmp_path) == {"gen-1", "gen-2"})
    state.close()


def test_many_records_are_written_before_their_time(tmp_path: Path) -> None:
    state = SqliteState(tmp_path, flush_s=3600)
    for number in range(1500):
        state.record(numbered(number))
    eventually(lambda: count(tmp_path) > 0)
    state.close()
    assert count(tmp_path) == 1500


def test_a_record_that_is_no_json_is_dropped_and_the_others_are_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = SqliteState(tmp_path)
    state.record(replace(numbered(1), served_model="\ud800"))
    state.record(replace(numbered(2), created="yesterday"))
    state.record(numbered(3))
    state.close()
    assert stored(tmp_path) == {"gen-3"}
    assert state.dropped == 2
    assert "gen-1 cannot be stored" in caplog.text


def test_a_record_has_its_time_and_the_name_of_its_key_beside_it(tmp_path: Path) -> None:
    state = SqliteState(tmp_path)
    state.record(numbered(1))
    state.close()
    with closing(sqlite3.connect(latest(tmp_path))) as connection:
        assert connection.execute("SELECT id, created, key FROM records").fetchall() == [("gen-1", CREATED, "key-1")]


def test_what_is_over_30_days_old_leaves_in_small_steps(database: Database, tmp_path: Path) -> None:
    old = CREATED - RETENTION_S - 3600
    hours = [Hour("p/m", NOW_HOUR - 24 * 30 - 2, b"old"), Hour("p/m", NOW_HOUR - 24 * 30 + 1, b"kept")]
    database.write(rows(0, 700, old) + rows(700, 3, CREATED), hours, [("a", old, b""), ("b", CREATED, b"kept")], "run")
    assert database.prune(CREATED) == PRUNE_ROWS
    assert count(tmp_path) == 203
    assert database.prune(CREATED) == 200
    assert database.prune(CREATED) == 0
    assert count(tmp_path) == 3
    assert [entry.payload for entry in database.hours(0, NOW_HOUR)] == [b"kept"]
    assert database.learnt() == {"b": b"kept"}


def test_over_the_size_the_oldest_records_leave_and_the_file_stops_growing(database: Database, tmp_path: Path) -> None:
    largest = 400_000
    sizes = []
    for turn in range(12):
        database.write(rows(turn * 400, 400, CREATED), [], [], "run")
        while database.prune(CREATED, largest) == PRUNE_ROWS:
            pass
        assert database.used_bytes <= largest
        sizes.append(database.used_bytes)
    assert sizes[-1] > largest / 2
    with closing(sqlite3.connect(latest(tmp_path))) as connection:
        kept = [int(name[4:]) for (name,) in connection.execute("SELECT id FROM records ORDER BY seq")]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    assert kept == list(range(kept[0], 4800))
    assert pages * 4096 < 2 * largest


def test_nothing_leaves_that_is_neither_old_nor_too_much(database: Database, tmp_path: Path) -> None:
    database.write(rows(0, 100, CREATED), [Hour("p/m", NOW_HOUR, b"")], [("a", CREATED, b"")], "run")
    assert database.prune(CREATED + 29 * DAY_S, MAX_BYTES) == 0
    assert (count(tmp_path), count(tmp_path, "hours"), count(tmp_path, "learnt")) == (100, 1, 1)


def test_the_writing_thread_removes_what_is_old(tmp_path: Path) -> None:
    opened = open_state(tmp_path)
    opened.database.write(rows(0, 1200, CREATED - RETENTION_S - 10), [], [], "run")
    opened.database.close()
    state = SqliteState(tmp_path, flush_s=0.01, wall=lambda: CREATED)
    eventually(lambda: count(tmp_path) == 0)
    state.close()


def test_hours_of_several_runs_are_kept_apart_and_one_runs_later_hour_replaces_its_earlier(tmp_path: Path) -> None:
    first = SqliteState(tmp_path, wall=lambda: CREATED)
    second = SqliteState(tmp_path, wall=lambda: CREATED)
    first.keep([Hour("p/m", NOW_HOUR, b"1"), Hour("p/n", NOW_HOUR, b"n")], {"p/m": b"first"})
    first.keep([Hour("p/m", NOW_HOUR, b"11")], {})
    second.keep([Hour("p/m", NOW_HOUR, b"2"), Hour("p/m", NOW_HOUR - 1, b"early")], {})
    first.close()
    second.keep([], {"p/m": b"second", "p/n": b"n"})
    second.close()
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    hours, learnt = state.remembered()
    state.close()
    assert sorted((entry.deployment_id, entry.hour - NOW_HOUR, entry.payload) for entry in hours) == [
        ("p/m", -1, b"early"),
        ("p/m", 0, b"11"),
        ("p/m", 0, b"2"),
        ("p/n", 0, b"n"),
    ]
    assert learnt == {"p/m": b"second", "p/n": b"n"}


def test_only_hours_of_the_longest_window_are_read_and_none_that_have_not_come(tmp_path: Path) -> None:
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    state.keep([Hour("p/m", NOW_HOUR + ahead, b"") for ahead in (-24 * 30, -24 * 7 - 1, -24 * 7, 0, 1, 2, 10**6)], {})
    state.close()
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    hours, _ = state.remembered()
    state.close()
    assert sorted(entry.hour - NOW_HOUR for entry in hours) == [-24 * 7, 0, 1]


def test_a_row_with_a_wrong_bit_is_absent(tmp_path: Path) -> None:
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    state.record(numbered(1))
    state.record(numbered(2))
    state.keep([Hour("p/m", NOW_HOUR, b"good"), Hour("p/n", NOW_HOUR, b"spoilt")], {"p/m": b"good", "p/n": b"spoilt"})
    state.close()
    with closing(sqlite3.connect(latest(tmp_path))) as connection:
        for table, column, name in (("records", "body", "id = 'gen-2'"), ("hours", "payload", "deployment = 'p/n'"),
                                    ("learnt", "payload", "deployment = 'p/n'")):  # fmt: skip
            (value,) = connection.execute(f"SELECT {column} FROM {table} WHERE {name}").fetchone()
            spoilt = value[:2] + bytes([value[2] ^ 16]) + value[3:]
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {name}", (spoilt,))
        connection.commit()
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    assert asyncio.run(state.find("gen-1")) is not None
    assert asyncio.run(state.find("gen-2")) is None
    hours, learnt = state.remembered()
    state.close()
    assert ([entry.payload for entry in hours], learnt) == ([b"good"], {"p/m": b"good"})


@pytest.mark.parametrize("value", ["", 5, b"", b"\0\0\0\0", b"abc", "text", 1.5])
def test_rows_of_another_shape_are_absent(tmp_path: Path, value: object) -> None:
    SqliteState(tmp_path).close()
    with closing(sqlite3.connect(latest(tmp_path))) as connection:
        connection.execute("INSERT INTO records VALUES (1, 'gen-1', 0, NULL, ?)", (value,))
        connection.execute("INSERT INTO hours VALUES (1, ?, 'p/m', 'run', ?)", (NOW_HOUR, value))
        connection.execute("INSERT INTO hours VALUES (2, ?, X'00', 'run', X'00000000')", (NOW_HOUR,))
        connection.execute("INSERT INTO learnt VALUES ('p/m', 0, ?)", (value,))
        connection.commit()
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    assert asyncio.run(state.find("gen-1")) is None
    hours, learnt = state.remembered()
    state.close()
    empty = value == b"\0\0\0\0"  # the seal of nothing
    assert [entry.payload for entry in hours] == ([b""] if empty else [])
    assert learnt == ({"p/m": b""} if empty else {})


def test_statistics_under_a_name_that_is_no_text_are_dropped_and_counted(tmp_path: Path) -> None:
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    state.keep([Hour("p/\ud800", NOW_HOUR, b"")], {"p/\ud800": b""})
    eventually(lambda: state.dropped == 1)
    state.keep([Hour("p/m", NOW_HOUR, b"kept")], {})
    state.close()
    state = SqliteState(tmp_path, wall=lambda: CREATED)
    assert [entry.payload for entry in state.remembered()[0]] == [b"kept"]
    state.close()


def test_two_gateways_find_each_others_records(tmp_path: Path) -> None:
    first, second = SqliteState(tmp_path, flush_s=0.01), SqliteState(tmp_path, flush_s=0.01)
    for number in range(0, 400, 2):
        first.record(numbered(number))
        second.record(numbered(number + 1))
    eventually(lambda: count(tmp_path) == 400)
    assert asyncio.run(first.find("gen-399")) is not None
    assert asyncio.run(second.find("gen-0")) is not None
    first.close()
    second.record(numbered(400))
    second.close()
    assert count(tmp_path) == 401
    assert (first.dropped, second.dropped) == (0, 0)


def test_while_another_process_holds_the_database_records_wait_and_are_dropped_only_beyond_the_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    state = SqliteState(tmp_path, limit=10, flush_s=0.01)
    with closing(sqlite3.connect(latest(tmp_path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        state.record(numbered(0))
        eventually(lambda: "state cannot be written" in caplog.text)
        for number in range(1, 31):
            state.record(numbered(number))
        assert state.dropped == 20
        other.execute("ROLLBACK")
    eventually(lambda: stored(tmp_path) == {f"gen-{number}" for number in range(11)})
    state.record(numbered(40))
    eventually(lambda: "gen-40" in stored(tmp_path))
    state.close()
    assert caplog.text.count("state has dropped") == 1
    assert "state is written again" in caplog.text
    assert state.dropped == 20


def test_a_stop_does_not_wait_for_ever_for_a_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = SqliteState(tmp_path, flush_s=3600)
    with closing(sqlite3.connect(latest(tmp_path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        state.record(numbered(1))
        state.close()
        assert "1 records could not be written" in caplog.text
        other.execute("ROLLBACK")
    assert stored(tmp_path) == set()


def test_a_folder_that_is_removed_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    state = SqliteState(folder, flush_s=0.01)
    state.record(numbered(1))
    eventually(lambda: stored(folder) == {"gen-1"})
    shutil.rmtree(folder)
    eventually(lambda: (folder / "state-2.db").exists())
    state.record(numbered(2))
    eventually(lambda: stored(folder) == {"gen-2"})
    state.close()


def test_a_folder_that_turns_into_a_file_stops_nothing_and_look_ups_say_so(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    state = SqliteState(folder, flush_s=0.01)
    shutil.rmtree(folder)
    folder.write_text("in the way")
    state.record(numbered(1))
    assert asyncio.run(state.find("gen-1")) is not None
    with pytest.raises(RequestError) as refused:
        asyncio.run(state.find("gen-2"))
    assert (refused.value.status, refused.value.code) == (503, "state_unavailable")
    assert state.remembered() == ([], {})
    folder.unlink()
    eventually(lambda: (folder / "state-2.db").exists())
    eventually(lambda: stored(folder) == {"gen-1"})
    state.close()


def test_closing_twice_and_records_after_the_close_do_no_harm(tmp_path: Path) -> None:
    state = SqliteState(tmp_path)
    state.close()
    state.record(numbered(1))
    state.close()
    assert asyncio.run(state.find("gen-1")) is not None
