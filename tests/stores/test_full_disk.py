"""A disk that is full: a process that may write no more than so many bytes to a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

from gateway.stores.sqlite import SqliteState
from tests.stores.records import stored

# Writes until its files may not grow, then gets room again. Prints what it saw.
FULL = """
import asyncio, json, logging, resource, sys
from pathlib import Path
from gateway.stores.sqlite import SqliteState
from tests.stores.records import eventually, numbered, stored

said = []
class Said(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.getLogger("gateway.stores").addHandler(Said())
logging.getLogger("gateway.stores").setLevel(logging.INFO)

folder = Path(sys.argv[1])
state = SqliteState(folder, limit=500, flush_s=0.01)
state.record(numbered(0))
eventually(lambda: stored(folder) == {"gen-0"})
size = max(file.stat().st_size for file in folder.iterdir())
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
for number in range(1, 300):
    state.record(numbered(number))
eventually(lambda: any("cannot be written" in line for line in said))
for number in range(300, 3000):
    state.record(numbered(number))
dropped = state.dropped
found = asyncio.run(state.find("gen-2999")) is not None
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
eventually(lambda: "state is written again" in said)
eventually(lambda: len(stored(folder)) == 3000 - dropped)
state.record(numbered(5000))
state.close()
print(json.dumps({"dropped": dropped, "after": state.dropped, "found": found, "said": said}))
"""


def test_on_a_full_disk_records_wait_then_are_dropped_and_nothing_breaks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["found"]
    assert 0 < seen["dropped"] == seen["after"] < 3000
    assert sum("cannot be written" in line for line in seen["said"]) == 1
    assert sum("has dropped" in line for line in seen["said"]) == 1
    assert not any("damaged" in line for line in seen["said"])
    state = SqliteState(tmp_path)
    state.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lock", "state-1.db"]
    assert "gen-5000" in stored(tmp_path)
