"""The checks of a run's trust and their thresholds: one table, over the rows and over what is known beside them."""

from __future__ import annotations

from cliffwatch.records.check import Check
from cliffwatch.records.figures import FIGURES
from cliffwatch.records.health import Health
from cliffwatch.records.schema import Outcome
from cliffwatch.records.sources import bias, compared, files, ports, sent, swapped, unseen_replicas, worst

_MEASURED = "FILTER (phase = 'measured')"
_OK = f"FILTER (phase = 'measured' AND outcome = '{Outcome.OK.value}')"
_COUNT_MEASURED = f"count(*) {_MEASURED}"
_COUNT_OK = f"count(*) {_OK}"
# Against this many tokens at least: a template's few tokens are most of a tiny prompt, and no server's time.
LENGTH_FLOOR_TOKENS = 256
_ASKED = "(input_tokens::BIGINT * batch)"
_LENGTH_ERROR = f"abs(server_input_tokens - {_ASKED}) / greatest({_ASKED}, {LENGTH_FLOOR_TOKENS} * batch)"


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
        fact=sent(lambda sending: sending.rate_error, lambda sending: sending.n),
    ),
    Check(
        "arrival gaps", "variation of the gaps between sends against the schedule's, of 5 ms or more", "", 0.1, 0.5,
        "requests left less evenly, or more, than the schedule has them: the variation of gaps is {value:.2f} off "
        "(threshold {threshold:g})",
        fact=sent(lambda sending: sending.variation_error, lambda sending: sending.n),
    ),
    Check(
        "Poisson dispersion", "standard deviations of sent counts' dispersion from a Poisson process's", "", 4.0, None,
        "what was sent is no Poisson process: its dispersion is {value:.1f} standard deviations off (threshold "
        "{threshold:g}: chance alone does that once in 15,000 runs)",
        fact=sent(lambda sending: sending.dispersion_score, lambda sending: sending.bins),
    ),
    Check(
        "prompt length", f"P95 of the error of prompts' lengths, against {LENGTH_FLOOR_TOKENS} tokens at least",
        "share", 0.02, 0.2,
        "prompts are not as long as asked: P95 of the error is {value:.1%} (threshold {threshold:.0%})",
        sql=f"quantile_cont({_LENGTH_ERROR}, 0.95) {_OK}",
        n_sql=f"count(server_input_tokens) {_OK}",
    ),
    Check(
        "prompt length unknown", "share of prompts whose length the server did not say", "share", 0.5, None,
        "the server did not say how long {value:.0%} of the prompts were, so their length is not confirmed",
        sql=f"sum((server_input_tokens IS NULL)::INTEGER) {_OK} / nullif({_COUNT_OK}, 0)", n_sql=_COUNT_OK,
    ),
    Check(
        "unseen replicas", "expected replicas that gave no answer in the measured phase", "", 1, None,
        "{value:.0f} of the replicas gave no answer ({where}): the figures are those of the others",
        fact=unseen_replicas,
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
        fact=worst(files),
    ),
    Check(
        "local ports", "local ports in use to the target against the host's range, worst host", "share", 0.8, 0.98,
        "{where} had {value:.0%} of its local ports to the target in use (threshold {threshold:.0%}): add hosts",
        fact=ports,
    ),
    Check(
        "swap", "share of a worker's memory that was swapped out, worst worker", "share", 0.1, None,
        "{value:.0%} of the memory of {where} was swapped out (threshold {threshold:.0%})",
        fact=worst(swapped),
    ),
    Check(
        "clock bound", "how far off the run's zero may be on a worker's clock, worst worker", "s", 0.02, None,
        "{where} may have begun {value:.3g} s beside the others (threshold {threshold:g} s): the link is too slow to "
        "compare clocks any better",
        fact=compared(lambda clock: clock.bound_s),
    ),
    Check(
        "clock drift", "how much a worker's clock drifted from the master's at least, worst worker", "s", 0.02, None,
        "the clock of {where} drifted by {value:.3g} s in the run (threshold {threshold:g} s): so did its requests",
        fact=compared(lambda clock: clock.proven_drift_s),
    ),
    Check(
        "TTFT bias", "P99 of the client's own error of TTFT against the tightest objective", "share", 0.1, None,
        "measuring TTFT adds up to {value:.0%} of the objective (threshold {threshold:.0%})",
        fact=bias("ttft"),
    ),
    Check(
        "ITL bias", "P99 of the client's own error of a gap against the tightest objective on ITL", "share", 0.1, None,
        "measuring gaps adds up to {value:.0%} of the objective (threshold {threshold:.0%})",
        fact=bias("itl"),
    ),
)  # fmt: skip
