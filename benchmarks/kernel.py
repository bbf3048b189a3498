"""What the kernel says of a process and its children: CPU time, resident memory, open sockets. Linux only."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Machine:
    """The class of machine, for a report; nothing that names the machine itself."""

    cpu: str
    cores: int
    kernel: str
    python: str


def machine() -> Machine:
    """This machine's class."""
    names = [line.partition(":")[2].strip() for line in _lines(PROC / "cpuinfo") if line.startswith("model name")]
    return Machine(
        cpu=names[0] if names else platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        kernel=".".join(platform.release().split(".")[:2]),
        python=platform.python_version(),
    )


def tree(pid: int) -> list[int]:
    """The process and all its descendants that live now."""
    parents: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of the whole tree so far.

    /proc/PID/stat counts in ticks of 10 ms; the scheduler's own nanoseconds, of the same clock, are taken where they
    are at hand. The larger of the two: the ticks also count threads that have ended.
    """
    return sum(max(_ticks_s(one), _scheduled_s(one)) for one in tree(pid))


def busy_seconds() -> float:
    """CPU time that the whole machine has spent on anything, what a host took from it included."""
    fields = [int(word) for word in _lines(PROC / "stat")[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) * _TICK_S


def resident_bytes(pid: int) -> int:
    """Resident memory of the whole tree; pages that processes share count for each."""
    kib = 0
    for one in tree(pid):
        for line in _lines(PROC / str(one) / "status"):
            if line.startswith("VmRSS:"):
                kib += int(line.split()[1])
    return kib * 1024


def sockets(pid: int) -> int:
    """Open sockets of the whole tree."""
    count = 0
    for one in tree(pid):
        for handle in _children(PROC / str(one) / "fd"):
            try:
                count += os.readlink(handle).startswith("socket:")
            except OSError:  # closed since the listing
                continue
    return count


def _ticks_s(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) * _TICK_S if fields else 0.0


def _scheduled_s(pid: int) -> float:
    total = 0
    for task in _children(PROC / str(pid) / "task"):
        for line in _lines(task / "schedstat"):
            total += int(line.split()[0])
    return total / 1e9


def _stat(pid: int) -> list[str] | None:
    """The fields after the command's name, which may itself hold spaces: state, ppid, …, utime at 11, stime at 12."""
    lines = _lines(PROC / str(pid) / "stat")
    return lines[0].rpartition(")")[2].split() if lines else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:  # the process has ended
        return []


def _children(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except OSError:  # the process has ended
        return []
