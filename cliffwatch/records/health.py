"""How a load worker was while it measured: the facts from which a run's trust is judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """One worker over one run. None means that this system does not say, never 0; shares are of one core (1.0) where
    they are named `cpu` or `run_queue`, of the whole host where they are named `host`.

    Attributes:
        measured_s: how long it was watched.
        loop_probes: probes of the event loop that were due.
        loop_lag_p50_s, loop_lag_p99_s, loop_lag_max_s: how late the event loop was for a probe; probes that fell due
            while it stood still count too, each with its own lateness.
        gc_pauses, gc_total_s, gc_max_s: collections of Python's garbage collector and the time they took.
        cpu_share: CPU time of the process, user and system, per wall second.
        cpu_peak_share: the same, in its busiest second.
        loop_cpu_share: CPU time of the event loop's thread in its busiest 5 s; 1.0 is all that a worker can have.
        run_queue_share: time the event loop's thread was ready to run and had no core, per wall second.
        host_cpu_share: the host's cores that were busy.
        host_steal_share: the host's CPU time that its hypervisor gave to others.
        fds_used, fd_limit: most file descriptors seen open, and how many this process may have.
        fd_limit_was: the limit before it was raised for the run.
        ports_used, port_range: most connections seen open to the target, and how many local ports the system gives out
            for one destination.
        rss_bytes, swap_bytes: most memory seen in use, and swapped out.
    """

    measured_s: float
    loop_probes: int = 0
    loop_lag_p50_s: float | None = None
    loop_lag_p99_s: float | None = None
    loop_lag_max_s: float | None = None
    gc_pauses: int = 0
    gc_total_s: float = 0.0
    gc_max_s: float | None = None
    cpu_share: float | None = None
    cpu_peak_share: float | None = None
    loop_cpu_share: float | None = None
    run_queue_share: float | None = None
    host_cpu_share: float | None = None
    host_steal_share: float | None = None
    fds_used: int | None = None
    fd_limit: int | None = None
    fd_limit_was: int | None = None
    ports_used: int | None = None
    port_range: int | None = None
    rss_bytes: int | None = None
    swap_bytes: int | None = None
