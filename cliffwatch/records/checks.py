"""The checks of a run's trust and their thresholds: one table, over the rows and over what is known beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cliffwatch.records.clock import WorkerClock
from cliffwatch.records.figures import FIGURES
from cliffwatch.records.health import Health
from cliffwatch.records.manifest import CheckResult, Manifest, VerdictState
from cliffwatch.records.schema import Outcome
from cliffwatch.records.sending import Sending


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run beside its rows; `sending` is None in a closed loop."""

    manifest: Manifest
    sending: Sending | None


@dataclass(frozen=True, slots=True)
class Found:
    """One value with its n; or None, and `unknown` says why. `where`: the worker or host that it is of."""

    value: float | None
    n: int | None = None
    where: str = ""
    unknown: str = "not known"


Source = Callable[[Facts], Found]


@dataclass(frozen=True, slots=True)
class Check:
    """One measured value and what it means.

    Attributes:
        name: how reports call it.
        means: what is measured, in words.
        unit: `s`, `share` or nothing for a number.
        degraded: the first value that makes a run DEGRADED (None: never).
        invalid: the first value that makes a run INVALID (None: never).
        message: what is said, with `{value}`, `{threshold}` and `{where}`.
        sql: an aggregate over the view `requests`; a null result means that there is nothing to check.
        n_sql: how many values are behind it, likewise.
        fact: the other source, in place of `sql`.
        below: whether low values are the bad ones.
    """

    name: str
    means: str
    unit: str
    degraded: float | None
    invalid: float | None
    message: str
    sql: str | None = None
    n_sql: str = "count(*)"
    fact: Source | None = None
    below: bool = False

    def __post_init__(self) -> None:
        if self.degraded is None and self.invalid is None:
            raise ValueError(f"check {self.name} can never fail")
        if (self.sql is None) == (self.fact is None):
            raise ValueError(f"check {self.name} needs one source, of rows or of facts")

    def judge(
        self, value: float | None, n: int | None = None, *, where: str = "", unknown: str = "nothing to check"
    ) -> CheckResult:
        """What a measured value means, the worse threshold first; without a value the state is None."""
        state: VerdictState | None = None if value is None else VerdictState.VALID
        crossed, message = None, unknown if value is None else None
        for worse, limit in ((VerdictState.INVALID, self.invalid), (VerdictState.DEGRADED, self.degraded)):
            if value is not None and limit is not None and (value < limit if self.below else value >= limit):
                state, crossed = worse, limit
                message = self.message.format(value=value, threshold=limit, where=where)
                break
        return CheckResult(
            check=self.name,
            state=state,
            message=message,
            value=value,
            unit=self.unit,
            threshold=crossed,
            degraded=self.degraded,
            invalid=self.invalid,
            below=self.below,
            n=n,
        )


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


def _files(health: Health) -> float | None:
    return None if health.fds_used is None or not health.fd_limit else health.fds_used / health.fd_limit


def _swapped(health: Health) -> float | None:
    if health.swap_bytes is None or health.rss_bytes is None or not health.rss_bytes + health.swap_bytes:
        return None
    return health.swap_bytes / (health.rss_bytes + health.swap_bytes)


def _ports(facts: Facts) -> Found:
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


def _clock(field: Callable[[WorkerClock], float | None]) -> Source:
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


def _sending(field: Callable[[Sending], float | None], n: Callable[[Sending], int]) -> Source:
    def look(facts: Facts) -> Found:
        if facts.sending is None:
            return Found(None, unknown="a closed loop has no arrivals of its own")
        value = field(facts.sending)
        return Found(value, n(facts.sending), unknown="too few requests, or not this kind of arrivals")

    return look


def _bias(figure: str) -> Source:
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


_MEASURED = "FILTER (phase = 'measured')"
_OK = f"FILTER (phase = 'measured' AND outcome = '{Outcome.OK.value}')"
_COUNT_MEASURED = f"count(*) {_MEASURED}"
_COUNT_OK = f"count(*) {_OK}"


def _of_probes(health: Health) -> int:
    return health.loop_probes


# Why these numbers: docs/judgement.md.
CHECKS: tuple[Check, ...] = (
    Check(
        "nothing measured", "requests of the measured phase", "", None, 1,
        "no request of the measured phase was recorded",
        sql=_COUNT_MEASURED, n_sql=_COUNT_MEASURED, below=True,
    ),
    Check(
        "few samples", "measured requests that succeeded", "", 200, None,
        "only {value:.0f} measured requests succeeded; a P95 needs {threshold:.0f}",
        sql=_COUNT_OK, n_sql=_COUNT_OK, below=True,
    ),
    Check(
        "late and lost", "share of the requests that were late or lost", "share", 0.001, 0.05,
        "{value:.2%} of the requests were late or lost (threshold {threshold:.1%})",
        sql=f"count(*) FILTER (outcome IN ('{Outcome.LATE.value}', '{Outcome.LOST.value}')) / nullif(count(*), 0)",
    ),
    Check(
        "send lag", "P99 of sent minus intended, without connecting", "s", 0.05, 1.0,
        "the load generator sent late: P99 of its lag is {value:.3g} s (threshold {threshold:g} s)",
        sql=f"quantile_cont({FIGURES['dispatch_lag_s'].sql}, 0.99) {_MEASURED}",
        n_sql=f"count({FIGURES['dispatch_lag_s'].sql}) {_MEASURED}",
    ),
    Check(
        "arrival rate", "rate of sending against the schedule's", "share", 0.01, 0.1,
        "requests did not leave at the rate of the schedule: {value:.1%} off (threshold {threshold:.0%})",
        fact=_sending(lambda sending: sending.rate_error, lambda sending: sending.n),
    ),
    Check(
        "arrival gaps", "variation of the gaps between sends against the schedule's, of 5 ms or more", "", 0.1, 0.5,
        "requests left less evenly, or more, than the schedule has them: the variation of gaps is {value:.2f} off "
        "(threshold {threshold:g})",
        fact=_sending(lambda sending: sending.variation_error, lambda sending: sending.n),
    ),
    Check(
        "Poisson dispersion", "standard deviations of sent counts' dispersion from a Poisson process's", "", 4.0, None,
        "what was sent is no Poisson process: its dispersion is {value:.1f} standard deviations off (threshold "
        "{threshold:g}: chance alone does that once in 15,000 runs)",
        fact=_sending(lambda sending: sending.dispersion_score, lambda sending: sending.bins),
    ),
    Check(
        "prompt length", "P95 of the error of prompts' lengths", "share", 0.02, 0.2,
        "prompts are not as long as asked: P95 of the error is {value:.1%} (threshold {threshold:.0%})",
        sql=f"quantile_cont(abs({FIGURES['length_error'].sql}), 0.95) {_OK}",
        n_sql=f"count({FIGURES['length_error'].sql}) {_OK}",
    ),
    Check(
        "prompt length unknown", "share of prompts whose length the server did not say", "share", 0.5, None,
        "the server did not say how long {value:.0%} of the prompts were, so their length is not confirmed",
        sql=f"sum((server_input_tokens IS NULL)::INTEGER) {_OK} / nullif({_COUNT_OK}, 0)", n_sql=_COUNT_OK,
    ),
    Check(
        "loop lag", "P99 of how late the event loop was for a probe, worst worker", "s", 0.05, 1.0,
        "the event loop of {where} was late: P99 {value:.3g} s (threshold {threshold:g} s)",
        fact=worst(lambda health: health.loop_lag_p99_s, _of_probes),
    ),
    Check(
        "standstill", "longest time that an event loop stood still, worst worker", "s", 0.5, None,
        "{where} stood still for {value:.3g} s (threshold {threshold:g} s): it was paused, or something blocked it",
        fact=worst(lambda health: health.loop_lag_max_s, _of_probes),
    ),
    Check(
        "collector pause", "longest pause of the garbage collector, worst worker", "s", 0.05, 1.0,
        "the garbage collector stopped {where} for {value:.3g} s (threshold {threshold:g} s)",
        fact=worst(lambda health: health.gc_max_s if health.gc_pauses else 0.0, lambda health: health.gc_pauses),
    ),
    Check(
        "worker CPU", "share of a core that the event loop used in its busiest 5 s, worst worker", "share", 0.85, 0.97,
        "{where} used {value:.0%} of the one core that it can use (threshold {threshold:.0%}): add workers",
        fact=worst(lambda health: health.loop_cpu_share),
    ),
    Check(
        "run queue", "share of the time that an event loop was ready and had no core, worst worker", "share", 0.1, 0.4,
        "{where} waited for a core {value:.0%} of the time (threshold {threshold:.0%}): other processes are in its way",
        fact=worst(lambda health: health.run_queue_share),
    ),
    Check(
        "CPU steal", "share of the host's CPU time that its hypervisor gave to others, worst host", "share", 0.02, 0.2,
        "the hypervisor took {value:.1%} of the CPU time of {where}'s host (threshold {threshold:.0%})",
        fact=worst(lambda health: health.host_steal_share),
    ),
    Check(
        "open files", "file descriptors in use against the limit, worst worker", "share", 0.8, 0.98,
        "{where} had {value:.0%} of its file descriptors in use (threshold {threshold:.0%}): raise the hard limit",
        fact=worst(_files),
    ),
    Check(
        "local ports", "local ports in use to the target against the host's range, worst host", "share", 0.8, 0.98,
        "{where} had {value:.0%} of its local ports to the target in use (threshold {threshold:.0%}): add hosts",
        fact=_ports,
    ),
    Check(
        "swap", "share of a worker's memory that was swapped out, worst worker", "share", 0.1, None,
        "{value:.0%} of the memory of {where} was swapped out (threshold {threshold:.0%})",
        fact=worst(_swapped),
    ),
    Check(
        "clock bound", "how far off the run's zero may be on a worker's clock, worst worker", "s", 0.02, None,
        "{where} may have begun {value:.3g} s beside the others (threshold {threshold:g} s): the link is too slow to "
        "compare clocks any better",
        fact=_clock(lambda clock: clock.bound_s),
    ),
    Check(
        "clock drift", "how much a worker's clock drifted from the master's at least, worst worker", "s", 0.02, None,
        "the clock of {where} drifted by {value:.3g} s in the run (threshold {threshold:g} s): so did its requests",
        fact=_clock(lambda clock: clock.proven_drift_s),
    ),
    Check(
        "TTFT bias", "P99 of the client's own error of TTFT against the tightest objective", "share", 0.1, None,
        "measuring TTFT adds up to {value:.0%} of the objective (threshold {threshold:.0%})",
        fact=_bias("ttft"),
    ),
    Check(
        "ITL bias", "P99 of the client's own error of a gap against the tightest objective on ITL", "share", 0.1, None,
        "measuring gaps adds up to {value:.0%} of the objective (threshold {threshold:.0%})",
        fact=_bias("itl"),
    ),
)  # fmt: skip
