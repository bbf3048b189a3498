"""Simulated providers: real HTTP servers that speak OpenAI chat, each with a script of speeds and faults.

async with SimulatedProvider(Script(name="hare", ttft=0.08, tps=400)) as hare:
    ...                                  # send requests to hare.base_url
    await hare.until(lambda stats: stats.aborted == 1)
    hare.stats.streams[-1].first_token   # the true moment, monotonic seconds
"""

from gateway.simulator.fleet import Fleet, read_fleet
from gateway.simulator.provider import SimulatedProvider
from gateway.simulator.script import Load, Reasoning, Script, Ttft, Window
from gateway.simulator.truth import RequestSeen, Stats, StreamTruth

__all__ = [
    "Fleet",
    "Load",
    "Reasoning",
    "RequestSeen",
    "Script",
    "SimulatedProvider",
    "Stats",
    "StreamTruth",
    "Ttft",
    "Window",
    "read_fleet",
]
