"""What a script says at a moment, and when that changes next. Pure functions of the seconds since the start."""

import math
from dataclasses import replace

from gateway.simulator.script import Script, Window


def script_at(script: Script, elapsed_s: float) -> Script:
    """The script with every open window applied, later ones over earlier ones."""
    for window in script.schedule:
        if _is_open(window, elapsed_s):
            script = replace(script, **window.set_)
    return script


def next_change(script: Script, elapsed_s: float) -> float | None:
    """Seconds since the start at which a window next opens or closes; None: never again."""
    edges = [edge for window in script.schedule for edge in _edges(window, elapsed_s) if edge > elapsed_s]
    return min(edges, default=None)


def _is_open(window: Window, elapsed_s: float) -> bool:
    since = elapsed_s - _round_start(window, elapsed_s)
    return since >= 0 and (window.for_ is None or since < window.for_)


def _edges(window: Window, elapsed_s: float) -> tuple[float, ...]:
    start = _round_start(window, elapsed_s)
    end = start if window.for_ is None else start + window.for_
    return (start, end) if window.every is None else (start, end, start + window.every)


def _round_start(window: Window, elapsed_s: float) -> float:
    """Where the round of a repeating window that `elapsed_s` lies in began (its first start before that)."""
    if window.every is None or elapsed_s < window.at:
        return window.at
    return window.at + math.floor((elapsed_s - window.at) / window.every) * window.every
