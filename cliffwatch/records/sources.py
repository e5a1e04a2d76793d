"""What checks look at beside the rows: workers' health and clocks, what was sent, calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cliffwatch.records.check import Facts, Found, Source
from cliffwatch.records.clock import WorkerClock
from cliffwatch.records.health import Health
from cliffwatch.records.sending import Sending

_SHOWN = 5  # names in a message


def worst(field: Callable[[Health], float | None], n: Callable[[Health], int] | None = None) -> Source:
    """The highest value among the workers that know theirs. `n` counts a worker's values, else it is the workers."""

    def look(facts: Facts) -> Found:
        known = [
            (value, worker)
            for worker in facts.manifest.workers
            if worker.health is not None and (value := field(worker.health)) is not None
        ]
        if not known:
            return Found(None, unknown="no worker could tell")
        value, worker = max(known, key=lambda pair: pair[0])
        assert worker.health is not None  # noqa: S101
        count = len(known) if n is None else n(worker.health)
        return Found(value, count, f"worker {worker.shard}")

    return look


def files(health: Health) -> float | None:
    return None if health.fds_used is None or not health.fd_limit else health.fds_used / health.fd_limit


def swapped(health: Health) -> float | None:
    if health.swap_bytes is None or health.rss_bytes is None or not health.rss_bytes + health.swap_bytes:
        return None
    return health.swap_bytes / (health.rss_bytes + health.swap_bytes)


def ports(facts: Facts) -> Found:
    """Workers of one host share its ports to a target: they count together."""
    hosts: dict[str, list[Health]] = {}
    for worker in facts.manifest.workers:
        if worker.health is not None and worker.health.ports_used is not None and worker.health.port_range:
            hosts.setdefault(worker.host or "", []).append(worker.health)
    shares = {host: _sum(one.ports_used for one in ones) / (ones[0].port_range or 1) for host, ones in hosts.items()}
    if not shares:
        return Found(None, unknown="no worker could tell")
    host = max(shares, key=shares.__getitem__)
    return Found(shares[host], len(hosts[host]), f"host {host}" if host else "a host")


def _sum(counts: Iterable[int | None]) -> int:
    return sum(count or 0 for count in counts)


def compared(field: Callable[[WorkerClock], float | None]) -> Source:
    """The highest value among the workers whose clock was compared with the master's."""

    def look(facts: Facts) -> Found:
        known = [
            (value, worker.shard)
            for worker in facts.manifest.workers
            if worker.clock is not None and (value := field(worker.clock)) is not None
        ]
        if not known:
            return Found(None, unknown="not compared, or one process is master and worker")
        value, shard = max(known)
        return Found(value, len(known), f"worker {shard}")

    return look


def sent(field: Callable[[Sending], float | None], n: Callable[[Sending], int]) -> Source:
    def look(facts: Facts) -> Found:
        if facts.sending is None:
            return Found(None, unknown="a closed loop has no arrivals of its own")
        value = field(facts.sending)
        return Found(value, n(facts.sending), unknown="too few requests, or not this kind of arrivals")

    return look


def unseen_replicas(facts: Facts) -> Found:
    """How many of the expected replicas gave no answer."""
    asked, answers = facts.manifest.replicas, facts.answers
    if asked is None or answers is None:
        return Found(None, unknown="not known: cliffwatch run --replica-header NAME --replicas N")
    if not answers:
        return Found(None, 0, unknown=f"no answer had a header {asked.header}")
    if asked.expected is None:
        return Found(None, unknown="how many there are was not said: --replicas")
    named = ", ".join(asked.missing(answers)[:_SHOWN])
    where = named or f"{len(answers)} of {asked.expected} answered"
    return Found(asked.unseen(answers), sum(answers.values()), where, "too few answers to tell it from chance")


def bias(figure: str) -> Source:
    """P99 of the client's error as a share of the tightest objective on the figure."""

    def look(facts: Facts) -> Found:
        calibration, objectives = facts.manifest.calibration, facts.manifest.tightest_s
        if calibration is None:
            return Found(None, unknown="not measured: cliffwatch run --calibrate")
        if figure not in objectives:
            return Found(None, unknown="no objective to compare it with")
        error = getattr(calibration.own, figure)
        return Found(max(0.0, error.p99_s) / objectives[figure], error.n)

    return look
