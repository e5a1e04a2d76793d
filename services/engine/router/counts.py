"""What the router itself exposes to Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from services.engine.router.policies import Replica


class Counts:
    """Counters of exchanges, and gauges that look at the replicas when they are read; each with a label `replica`."""

    def __init__(self, replicas: Iterable[Replica]) -> None:
        self._registry = CollectorRegistry()
        self.sent = self._counter("requests", "Requests handed to a replica.")
        self.broken = self._counter("broken", "Exchanges that a replica broke off.")
        in_flight = self._gauge("in_flight", "Requests that a replica is at.")
        healthy = self._gauge("replica_healthy", "Whether a replica takes requests.")
        for replica in replicas:
            self.sent.labels(replica.address)
            self.broken.labels(replica.address)
            in_flight.labels(replica.address).set_function(_field(replica, "in_flight"))
            healthy.labels(replica.address).set_function(_field(replica, "healthy"))

    def expose(self) -> bytes:
        """The text format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"cliffwatch_router_{name}", text, ["replica"], registry=self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"cliffwatch_router_{name}", text, ["replica"], registry=self._registry)


def _field(replica: Replica, name: str) -> Callable[[], float]:
    return lambda: float(getattr(replica, name))
