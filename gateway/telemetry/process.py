"""Memory, descriptors, CPU and garbage collection of the process, from prometheus-client's collectors."""

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest


class ProcessMetrics:
    """`process_…`, `python_info` and `python_gc_…` on a registry of their own."""

    __slots__ = ("_registry",)

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def render(self) -> bytes:
        return generate_latest(self._registry)
