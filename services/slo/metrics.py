"""`/metrics`: what the newest runs show, and how the service itself is doing. Label values are bounded."""

from __future__ import annotations

import asyncio
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cliffwatch.errors import CliffwatchError
from cliffwatch.records.schema import Phase
from cliffwatch.report.summary import Report
from cliffwatch.slo.judgement import ObjectiveResult, Status
from cliffwatch.slo.quantiles import PERCENTILES
from services.slo.service import Service
from services.slo.store import ListedRun
from services.slo.views import tally

MAX_RUNS = 20
DEADLINE_S = 5.0
STATES = ("running", "complete", "partial", "damaged")


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What `/metrics` shows of one run."""

    outcomes: dict[tuple[str, str], int]
    report: Report


class ServiceMetrics:
    """The service's own counters, and the runs' figures gathered anew (or from the kept answers) for each scrape."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "cliffwatch_http_requests", "Answered requests.", ["route", "status"], registry=self.registry
        )
        self._duration = Histogram(
            "cliffwatch_http_request_duration_seconds",
            "Time to answer.",
            ["route"],
            buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1, 3, 10),
            registry=self.registry,
        )

    def observe(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._duration.labels(route).observe(seconds)


async def gather(service: Service) -> RunsCollector:
    """Figures of the newest `MAX_RUNS` runs; those not computed by the deadline are left out until a later scrape."""
    runs = await service.answers.look("list", service.store.list)
    readable = [run for run in runs if run.manifest is not None][:MAX_RUNS]
    tasks = {run.folder.run_id: asyncio.ensure_future(_figures(service, run)) for run in readable}
    if tasks:
        await asyncio.wait(tasks.values(), timeout=DEADLINE_S)
    figures = {}
    for run_id, task in tasks.items():
        found = task.result() if task.done() else None
        task.cancel()  # the computation itself goes on in the pool, and is kept
        if found is not None:
            figures[run_id] = found
    return RunsCollector(runs, figures)


async def _figures(service: Service, run: ListedRun) -> RunFigures | None:
    try:
        outcomes = await service.compute(run.folder, "tally", tally)
        return RunFigures(outcomes, await service.report(run.folder, Phase.MEASURED.value))
    except CliffwatchError:
        return None


class RunsCollector(Collector):
    """The runs as Prometheus families. A run whose figures are absent is known by `cliffwatch_run_readable` 0."""

    def __init__(self, runs: list[ListedRun], figures: dict[str, RunFigures]) -> None:
        self._runs = runs
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        yield from self._folder()
        requests = CounterMetricFamily(
            "cliffwatch_run_requests", "Recorded requests of a run.", labels=["run", "phase", "outcome"]
        )
        for run_id, figures in self._figures.items():
            for (phase, outcome), count in figures.outcomes.items():
                requests.add_metric([run_id, phase, outcome], count)
        yield requests
        yield from self._latencies()
        yield from self._objectives()
        yield from self._goodput()

    def _folder(self) -> Iterator[Metric]:
        tally = Tally("damaged" if run.manifest is None else run.manifest.state.value for run in self._runs)
        states = GaugeMetricFamily("cliffwatch_runs", "Runs in the folder by state.", labels=["state"])
        for state in STATES:
            states.add_metric([state], tally[state])
        yield states
        info = GaugeMetricFamily(
            "cliffwatch_run_info", "1 for each run shown here.", labels=["run", "workload", "model", "state", "verdict"]
        )
        readable = GaugeMetricFamily(
            "cliffwatch_run_readable", "1 where a run's rows were read for this scrape.", labels=["run"]
        )
        for run in self._runs[:MAX_RUNS]:
            readable.add_metric([run.folder.run_id], int(run.folder.run_id in self._figures))
            if run.manifest is not None:
                verdict = run.manifest.verdict.state.value if run.manifest.verdict else ""
                labels = [run.folder.run_id, run.manifest.name, run.manifest.model, run.manifest.state.value, verdict]
                info.add_metric(labels, 1)
        yield info
        yield readable

    def _latencies(self) -> Iterator[Metric]:
        quantiles = GaugeMetricFamily(
            "cliffwatch_run_latency_seconds",
            "Exact quantiles over a run's successful measured requests.",
            labels=["run", "metric", "quantile"],
        )
        samples = GaugeMetricFamily(
            "cliffwatch_run_latency_samples", "Requests behind the quantiles.", labels=["run", "metric"]
        )
        for run_id, figures in self._figures.items():
            for latency in figures.report.figures:
                samples.add_metric([run_id, latency.figure], latency.n)
                for name, one in latency.percentiles.items():
                    if one.value is not None:
                        quantiles.add_metric([run_id, latency.figure, f"{PERCENTILES[name]:g}"], one.value)
        yield quantiles
        yield samples

    def _objectives(self) -> Iterator[Metric]:
        labels = ["run", "objective", "sli"]
        ratios = {
            name: GaugeMetricFamily(f"cliffwatch_run_objective_{name}_ratio", text, labels=labels)
            for name, text in _OBJECTIVE_RATIOS.items()
        }
        events = CounterMetricFamily(
            "cliffwatch_run_objective_requests", "Requests that count, by result.", labels=[*labels, "result"]
        )
        status = GaugeMetricFamily(
            "cliffwatch_run_objective_status", "1 for the status that an objective has.", labels=[*labels, "status"]
        )
        for run_id, one in self._judged():
            own = [run_id, one.label, one.sli.value]
            for name, value in _ratios(one).items():
                if value is not None:
                    ratios[name].add_metric(own, value)
            events.add_metric([*own, "good"], one.good)
            events.add_metric([*own, "bad"], one.bad)
            for state in Status:
                status.add_metric([*own, state.value], int(one.status is state))
        yield from ratios.values()
        yield events
        yield status

    def _judged(self) -> Iterator[tuple[str, ObjectiveResult]]:
        for run_id, figures in self._figures.items():
            for one in figures.report.judgement.objectives if figures.report.judgement else ():
                yield run_id, one

    def _goodput(self) -> Iterator[Metric]:
        rate = GaugeMetricFamily(
            "cliffwatch_run_goodput_requests_per_second", "Requests a second that met every objective.", labels=["run"]
        )
        ratio = GaugeMetricFamily(
            "cliffwatch_run_goodput_ratio", "Share of the requests sent that met every objective.", labels=["run"]
        )
        for run_id, figures in self._figures.items():
            goodput = figures.report.judgement.goodput if figures.report.judgement else None
            if goodput and goodput.per_s is not None:
                rate.add_metric([run_id], goodput.per_s)
            if goodput and goodput.ratio is not None:
                ratio.add_metric([run_id], goodput.ratio)
        yield rate
        yield ratio


_OBJECTIVE_RATIOS = {
    "attainment": "Share of good requests.",
    "attainment_low": "Lower end of its Wilson 95 % interval.",
    "attainment_high": "Upper end of its Wilson 95 % interval.",
    "target": "The share that was promised.",
    "budget_remaining": "1 - (bad share / allowed bad share); below 0 when overspent.",
}


def _ratios(one: ObjectiveResult) -> dict[str, float | None]:
    remaining = None if one.attainment is None else 1 - (1 - one.attainment) / (1 - one.target)
    return {
        "attainment": one.attainment,
        "attainment_low": one.low,
        "attainment_high": one.high,
        "target": one.target,
        "budget_remaining": remaining,
    }
