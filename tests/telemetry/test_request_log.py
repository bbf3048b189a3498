"""The request log: a JSON line for each record, from a thread that never holds up the caller."""

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from gateway.core.errors import ConfigError
from gateway.core.record import as_json
from gateway.telemetry.request_log import RequestLog
from tests.telemetry.catalogs import RECORD


def _ids(path: Path) -> list[str]:
    return [orjson.loads(line)["id"] for line in path.read_bytes().splitlines()]


def test_each_record_is_one_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "requests.log"
    log = RequestLog(str(path))
    log.record(RECORD)
    log.record(replace(RECORD, id="gen-2", task="line\nend"))
    log.close()
    first, second = path.read_bytes().splitlines()
    assert orjson.loads(first) == orjson.loads(orjson.dumps(as_json(RECORD)))
    assert orjson.loads(second)["task"] == "line\nend"
    assert log.dropped == 0


def test_standard_output_gets_the_lines_too(capfd: pytest.CaptureFixture[str]) -> None:
    log = RequestLog("stdout")
    log.record(RECORD)
    log.close()
    assert orjson.loads(capfd.readouterr().out)["id"] == "gen-1"


def test_a_line_is_there_without_closing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = RequestLog(str(pipe))
    os.set_blocking(reader, True)
    log.record(RECORD)
    assert orjson.loads(os.read(reader, 65536))["id"] == "gen-1"
    log.close()
    os.close(reader)


def test_lines_are_appended_to_a_file_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "requests.log"
    for number in (1, 2):
        log = RequestLog(str(path))
        log.record(replace(RECORD, id=f"gen-{number}"))
        log.close()
    assert _ids(path) == ["gen-1", "gen-2"]


def test_a_file_that_was_rotated_away_is_opened_anew(tmp_path: Path) -> None:
    path, old = tmp_path / "requests.log", tmp_path / "requests.log.1"
    log = RequestLog(str(path))
    path.rename(old)
    log.record(RECORD)
    log.close()
    assert _ids(path) == ["gen-1"]
    assert _ids(old) == []


def test_a_file_that_cannot_be_opened_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"telemetry\.request_log: cannot write"):
        RequestLog(str(tmp_path / "missing" / "requests.log"))


@pytest.fixture
def hung_pipe(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A pipe that is full: whoever writes to it hangs until it is read."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    filler = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(filler, b"\n" * 4096)
    except BlockingIOError:
        os.close(filler)
    yield str(path), reader
    os.close(reader)


def test_a_target_that_hangs_costs_lines_and_not_time(hung_pipe: tuple[str, int]) -> None:
    path, reader = hung_pipe
    log = RequestLog(path, limit=5, flush_s=0.0)
    for number in range(50):
        log.record(replace(RECORD, id=f"gen-{number}"))
    assert log.dropped >= 50 - 5 - 2 * 5  # at most one block is being written and one was gathered
    assert log.dropped < 50
    os.set_blocking(reader, True)
    drain = threading.Thread(target=_read_all, args=(reader,))
    drain.start()
    log.close()
    drain.join()


def _read_all(reader: int) -> None:
    while os.read(reader, 65536):
        pass


def test_a_target_that_fails_is_counted_and_raises_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = RequestLog(str(path))
    os.close(reader)
    log.record(RECORD)
    log.close()
    assert log.dropped == 1
    assert "lost 1 lines" in caplog.text


def test_a_record_that_is_no_json_is_counted_and_raises_nothing(tmp_path: Path) -> None:
    path = tmp_path / "requests.log"
    log = RequestLog(str(path))
    log.record(replace(RECORD, task="\ud800"))
    log.record(RECORD)
    log.close()
    assert log.dropped == 1
    assert _ids(path) == ["gen-1"]


def test_a_record_after_the_end_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "requests.log"
    log = RequestLog(str(path))
    log.close()
    log.record(RECORD)
    assert log.dropped == 1
    assert _ids(path) == []


def test_what_only_feeds_histograms_is_not_in_the_line(tmp_path: Path) -> None:
    path = tmp_path / "requests.log"
    log = RequestLog(str(path))
    log.record(RECORD)
    log.close()
    assert "gaps_s" not in orjson.loads(path.read_bytes())
