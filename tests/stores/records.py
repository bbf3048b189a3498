"""Records for the stores' tests, and a way to wait for the writing thread."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from gateway.core.record import AttemptRecord, Chars, GenerationRecord, Speed, Tokens

RECORD = GenerationRecord(
    id="gen-0",
    created="2026-11-30T12:00:00.250Z",
    surface="chat.completions",
    stream=True,
    requested_model="m",
    outcome="ok",
    tokens=Tokens(input=11, output=5, source="usage"),
    speed=Speed(output_tps=83.25, quality="ok", weight=0.2412, marks=("cold", "retry")),
    server_clock={"decode_ms": 12.5},
    cost_usd=0.000062,
    attempts=(AttemptRecord("p/m", "p", "m", "primary", "ok", status=200),),
)
SAMPLE = replace(
    RECORD, deployment="p/m", provider="p", chars=Chars(content=300), tokens=Tokens(11, output=100, source="usage")
)
# Seconds since the epoch of that `created`.
CREATED = 1_796_040_000


def numbered(number: int) -> GenerationRecord:
    return replace(RECORD, id=f"gen-{number}", key=f"key-{number}")


def eventually(happened: Callable[[], bool]) -> None:
    """Waits for what another thread or process does."""
    until = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.005)


def stored(folder: Path) -> set[str]:
    """The ids in the folder's database, as another process sees them; none where it has no tables or is damaged."""
    with closing(sqlite3.connect(f"{latest(folder).as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return {name for (name,) in connection.execute("SELECT id FROM records")}
        except sqlite3.DatabaseError:
            return set()


def latest(folder: Path) -> Path:
    """The database that is in use."""
    return max(folder.glob("state-*.db"), key=lambda file: int(file.stem[6:]))
