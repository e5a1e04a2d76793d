"""Names, kinds and meaning of every metric of the load generator: `cliffwatch_client_*`."""

from __future__ import annotations

from loadgen.metrics.exposition import Family

_LATENCY = (
    "Of requests that ended ok; of failed ones only the least that it would have been (beyond the edge it gave up at), "
    "never of cancelled, late or lost ones."
)


def _histogram(name: str, text: str) -> Family:
    return Family(f"cliffwatch_client_{name}_seconds", "histogram", f"{text} {_LATENCY}")


def _counter(name: str, text: str) -> Family:
    return Family(f"cliffwatch_client_{name}_total", "counter", text)


def _gauge(name: str, text: str) -> Family:
    return Family(f"cliffwatch_client_{name}", "gauge", text)


# by figure of `records.figures`; names are those of reports, where TTFT and E2E count from the intended time
FIGURES = {
    "ttft_user_s": _histogram("ttft", "TTFT: time from when a request was due to its first token."),
    "ttft_s": _histogram("ttft_service", "TTFT, service: time from the last byte sent to the first token."),
    "ttfa_user_s": _histogram("ttfa", "Time from when a request was due to its first token that is not reasoning."),
    "ttfa_s": _histogram("ttfa_service", "Time from the last byte sent to the first token that is not reasoning."),
    "e2e_user_s": _histogram("e2e", "E2E: time from when a request was due to its last token."),
    "e2e_s": _histogram("e2e_service", "E2E, service: time from the last byte sent to the last token."),
    "itl_s": _histogram("itl", "ITL: (last - first) / (output tokens - 1), one value a request, not one a gap."),
    "tpot_s": _histogram("tpot", "TPOT: (E2E - TTFT) / (output tokens - 1), one value a request."),
    "ntpot_s": _histogram("ntpot", "NTPOT: E2E / output tokens, one value a request."),
}
REQUESTS = _counter("requests", "Requests that ended, each with exactly one outcome.")
INPUT_TOKENS = _counter("input_tokens", "Prompt tokens by the server's own count, where it gave one.")
OUTPUT_TOKENS = _counter("output_tokens", "Output tokens by the server's count, else token-bearing chunks.")
SEND_LAG = Family(
    "cliffwatch_client_send_lag_seconds",
    "histogram",
    "Sent minus due, without connecting: what the load generator itself was late.",
)
ISSUED = _counter("issued", "Requests whose time has come; those that have not ended are in flight.")
IN_FLIGHT = _gauge("in_flight", "Requests issued and not ended, of workers that live.")
BUILD_INFO = _gauge("build_info", "1; what program this is.")

RUN_INFO = _gauge("run_info", "1; the run that is shown, the newest of this process.")
RUN_STATE = _gauge("run_state", "1 for the state that the run has.")
ELAPSED = _gauge("elapsed_seconds", "Since the run's zero, while requests are sent.")
ASKED_RATE = _gauge(
    "asked_requests_per_second", "What the workload asks for at this moment; absent where server or trace decide."
)
ISSUED_RATE = _gauge("issued_requests_per_second", "Mean since the run's zero, of workers that live.")
WORKERS = _gauge("workers", "Workers of the run by state.")
VERDICT = _gauge("verdict", "1 for the verdict so far, and in the end the run's.")
FINDING = _gauge("finding", "1 for each check of the verdict that is not well.")
ESTIMATE = Family(
    "cliffwatch_client_latency_estimate_seconds",
    "summary",
    "Quantiles over all workers and phases, of requests that ended ok (send_lag: that were sent); within 1 % of exact.",
)


def _of_worker(name: str, text: str) -> Family:
    return _gauge(f"worker_{name}", f"{text} One value a worker that lives.")


# by field of `records.health.Health`, which says what each is
HEALTH = {
    "loop_lag_p99_s": _of_worker("loop_lag_p99_seconds", "P99 of how late the event loop was, since the run began."),
    "loop_lag_max_s": _of_worker("loop_lag_max_seconds", "The latest that the event loop was, since the run began."),
    "gc_max_s": _of_worker("gc_max_seconds", "The longest pause of the garbage collector, since the run began."),
    "cpu_share": _of_worker("cpu_ratio", "CPU time of the process per wall second, since the run began."),
    "loop_cpu_share": _of_worker(
        "loop_cpu_ratio", "CPU share of the event loop in its busiest 5 s; 1 is all it can have."
    ),
    "run_queue_share": _of_worker("run_queue_ratio", "Share of time the event loop was ready to run and had no core."),
    "host_steal_share": _of_worker("host_steal_ratio", "Share of the host's CPU that its hypervisor gave to others."),
    "fds_used": _of_worker("open_fds", "Most file descriptors seen open."),
    "ports_used": _of_worker("connections", "Most connections to the target seen open."),
    "rss_bytes": _of_worker("resident_memory_bytes", "Most memory seen in use."),
}
# by field of `records.clock.WorkerClock`
CLOCK = {
    "offset_s": _of_worker("clock_offset_seconds", "The worker's wall clock minus the master's, when the run began."),
    "bound_s": _of_worker("clock_offset_bound_seconds", "How far off the clock offset may be, for certain."),
}

OF_REQUESTS = (REQUESTS, *FIGURES.values(), SEND_LAG, INPUT_TOKENS, OUTPUT_TOKENS, ISSUED, IN_FLIGHT)
OF_RUN = (RUN_INFO, RUN_STATE, ELAPSED, ASKED_RATE, ISSUED_RATE, WORKERS, VERDICT, FINDING, ESTIMATE)
OF_WORKERS = (*HEALTH.values(), *CLOCK.values())
ALL = (BUILD_INFO, *OF_REQUESTS, *OF_RUN, *OF_WORKERS)
