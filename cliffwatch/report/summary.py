"""A run in figures: what every form of the report (table, JSON, HTML) shows. Pure over a run folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
from pydantic import BaseModel, ConfigDict

from cliffwatch.cost.price import Price
from cliffwatch.cost.work import Work, measure_work
from cliffwatch.records.calibration import Error
from cliffwatch.records.conditions import OK, in_phase
from cliffwatch.records.folder import SLO_FILE
from cliffwatch.records.manifest import Manifest, Verdict, VerdictState
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import FAILURES, Outcome, Phase
from cliffwatch.report.clients import TRIED_AGAIN, Cancellations, Retries, count_cancellations, count_retries
from cliffwatch.report.groups import Grouping, GroupSummary, group
from cliffwatch.report.intervals import Intervals, SureQuantile, percentile_intervals
from cliffwatch.report.query import ok_in, row, rows
from cliffwatch.report.replicas import ReplicasSummary, summarize_replicas
from cliffwatch.report.settling import Settling, settle
from cliffwatch.slo.beside.document import Beside
from cliffwatch.slo.judge import judge, partial_note, price_of
from cliffwatch.slo.judgement import Judgement
from cliffwatch.slo.quantiles import PERCENTILES, quantiles
from cliffwatch.slo.spec import SloFile, load_slo

TOP_ERRORS = 8
MESSAGE_LENGTH = 200

# Shown for every run, in this order; the first of a pair is for open-loop runs, where waiting to be sent counts too.
SHOWN = {
    "TTFT": ("ttft_user_s", "ttft_s"),
    "TTFT, service": ("ttft_s", None),
    "ITL": ("itl_s", "itl_s"),
    "TPOT": ("tpot_s", "tpot_s"),
    "E2E": ("e2e_user_s", "e2e_s"),
    "E2E, service": ("e2e_s", None),
    "NTPOT": ("ntpot_s", "ntpot_s"),
    "send lag": ("send_lag_s", "send_lag_s"),
}


# Figures whose error a calibration measures: from sent; waiting to be sent is the send lag's.
BIASED = {"ttft_user_s": "ttft", "ttft_s": "ttft", "itl_s": "itl"}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class FigureSummary(_Part):
    """One latency over the successful requests: seconds, null where unknown; `n` is how many requests have it.

    `bias` is the client's own error of it, where it was measured before the run.
    """

    label: str
    figure: str
    n: int
    mean: float | None
    min: float | None
    max: float | None
    percentiles: dict[str, SureQuantile]
    bias: Error | None = None


class OutcomeCount(_Part):
    """How many requests ended so; `kind` is ok, failed or not_served."""

    outcome: Outcome
    kind: str
    n: int
    share: float


class ErrorCount(_Part):
    """One message that failed requests had, with how many had it."""

    outcome: Outcome
    message: str
    n: int


class Throughput(_Part):
    """Successful work per second of the held time; null where nothing ended or a count is not known."""

    requests_per_s: float | None
    input_tokens_per_s: float | None
    output_tokens_per_s: float | None


class PhaseSummary(_Part):
    """A part of the run that is not judged: how many were sent, how many succeeded, their TTFT from sent."""

    phase: Phase
    n: int
    ok: int
    ttft: FigureSummary


class Report(_Part):
    """A run and, where there is an SLO file, its judgement.

    Attributes:
        partial: why the run is not whole, null when it is.
        price: from the SLO file's cost, else the run's; null where neither tells.
        settling: where MSER-5 would cut the run's beginning and end, and whether it drifts; nothing was cut by it.
        retries, cancellations: of the judged requests, where the workload asked for any.
        retried: with all attempts, from the first one's send to the last token: of those answered after a retry.
        apart: cold-start and warm-up requests, where the run has any.
        replicas: the judged requests by the replica that answered, where a header was to tell it.
        by, groups: the judged requests told apart, where that was asked for.
        beside: the engine's own figures over the same time, where a Prometheus was asked for them.
    """

    manifest: Manifest
    phase: str
    partial: str | None
    verdict: Verdict | None
    judgement: Judgement | None
    n: int
    figures: tuple[FigureSummary, ...]
    outcomes: tuple[OutcomeCount, ...]
    errors: tuple[ErrorCount, ...]
    work: Work
    throughput: Throughput
    price: Price | None
    apart: tuple[PhaseSummary, ...]
    settling: tuple[Settling, ...] = ()
    retries: Retries | None = None
    retried: FigureSummary | None = None
    cancellations: Cancellations | None = None
    replicas: ReplicasSummary | None = None
    by: Grouping | None = None
    groups: tuple[GroupSummary, ...] = ()
    beside: Beside | None = None

    @property
    def invalid(self) -> bool:
        return self.verdict is not None and self.verdict.state is VerdictState.INVALID


def build(run_dir: Path | str, slo: SloFile | None = None, *, phase: Phase | None = Phase.MEASURED) -> Report:
    """Read and judge a run, by `slo` or else by the SLO file that its folder holds.

    Raises:
        RunError: no run there, or a damaged manifest or shard.
        InputError: the folder's SLO file is faulty.
    """
    reader = RunReader(Path(run_dir))
    return summarize(reader, slo or own_slo(Path(run_dir)), phase=phase)


def own_slo(run_dir: Path) -> SloFile | None:
    """The SLO file that the run was started with; None where there was none. Raises InputError."""
    path = run_dir / SLO_FILE
    return load_slo(path) if path.is_file() else None


def summarize(
    reader: RunReader, slo: SloFile | None, *, phase: Phase | None = Phase.MEASURED, by: Grouping | None = None
) -> Report:
    """`build` on an open reader. Raises RunError on damaged shards."""
    manifest = reader.manifest
    judgement = judge(reader, slo, phase=phase) if slo else None
    with reader.session() as connection:
        outcomes = _outcomes(connection, phase)
        work = measure_work(connection, phase)
        retries = count_retries(connection, manifest, phase)
        retried = f"{ok_in(phase)} AND {TRIED_AGAIN}"
        return Report(
            manifest=manifest,
            phase=phase or "all",
            partial=partial_note(manifest),
            verdict=manifest.verdict,
            judgement=judgement,
            n=sum(one.n for one in outcomes),
            figures=_figures(connection, manifest, phase),
            outcomes=outcomes,
            errors=_errors(connection, phase),
            work=work,
            throughput=_throughput(work),
            price=judgement.price if judgement else price_of(manifest, work),
            apart=tuple(_apart(connection, _main_figures(manifest)["TTFT"])),
            settling=settle(connection, _main_figures(manifest)),
            retries=retries,
            retried=_figure(connection, "E2E, all attempts", "total_s", retried) if retries else None,
            cancellations=count_cancellations(connection, manifest, phase),
            replicas=summarize_replicas(connection, manifest, phase),
            by=by,
            groups=() if by is None else group(connection, by, _main_figures(manifest), phase),
        )


def _main_figures(manifest: Manifest) -> dict[str, str]:
    pairs = ((label, SHOWN[label][0 if manifest.open_loop else 1]) for label in ("TTFT", "ITL", "E2E"))
    return {label: figure for label, figure in pairs if figure}


def _figures(
    connection: duckdb.DuckDBPyConnection, manifest: Manifest, phase: Phase | None
) -> tuple[FigureSummary, ...]:
    chosen = {label: pair[0] if manifest.open_loop else pair[1] for label, pair in SHOWN.items()}
    found = [_figure(connection, label, figure, ok_in(phase)) for label, figure in chosen.items() if figure]
    known = {
        (one.figure, PERCENTILES[name]): (quantile.value, one.n)
        for one in found
        for name, quantile in one.percentiles.items()
        if quantile.value is not None
    }
    intervals = percentile_intervals(connection, known, ok_in(phase))
    calibration = manifest.calibration
    biases = {} if calibration is None else {figure: getattr(calibration.own, key) for figure, key in BIASED.items()}
    return tuple(_with_intervals(one, intervals).model_copy(update={"bias": biases.get(one.figure)}) for one in found)


def _with_intervals(one: FigureSummary, intervals: Intervals) -> FigureSummary:
    sure = {}
    for name, quantile in one.percentiles.items():
        low, high = intervals.get((one.figure, PERCENTILES[name]), (None, None))
        sure[name] = quantile.model_copy(update={"low": low, "high": high})
    return one.model_copy(update={"percentiles": sure})


def _figure(connection: duckdb.DuckDBPyConnection, label: str, figure: str, condition: str) -> FigureSummary:
    aggregates = (f"{function}({figure})" for function in ("count", "avg", "min", "max"))
    levels = list(PERCENTILES.values())
    n, mean, low, high, values = row(
        connection, f"{', '.join(aggregates)}, quantile_cont({figure}, {levels})", condition
    )
    percentiles = {name: SureQuantile(**dict(one)) for name, one in quantiles(values, n).items()}
    return FigureSummary(label=label, figure=figure, n=n, mean=mean, min=low, max=high, percentiles=percentiles)


def _outcomes(connection: duckdb.DuckDBPyConnection, phase: Phase | None) -> tuple[OutcomeCount, ...]:
    found = rows(connection, "outcome, count(*) AS n", in_phase(phase), "GROUP BY 1 ORDER BY n DESC, outcome")
    total = sum(n for _, n in found)
    return tuple(
        OutcomeCount(outcome=Outcome(name), kind=_kind(Outcome(name)), n=n, share=n / total) for name, n in found
    )


def _kind(outcome: Outcome) -> str:
    if outcome is Outcome.OK:
        return "ok"
    return "failed" if outcome in FAILURES else "not_served"


def _errors(connection: duckdb.DuckDBPyConnection, phase: Phase | None) -> tuple[ErrorCount, ...]:
    found = rows(
        connection,
        f"outcome, left(error, {MESSAGE_LENGTH}), count(*) AS n",
        f"error IS NOT NULL AND {in_phase(phase)}",
        f"GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT {TOP_ERRORS}",
    )
    return tuple(ErrorCount(outcome=Outcome(outcome), message=message, n=n) for outcome, message, n in found)


def _throughput(work: Work) -> Throughput:
    return Throughput(
        requests_per_s=work.per_s(work.requests),
        input_tokens_per_s=work.per_s(work.input_tokens),
        output_tokens_per_s=work.per_s(work.output_tokens),
    )


def _apart(connection: duckdb.DuckDBPyConnection, ttft: str) -> Iterator[PhaseSummary]:
    """The cold start and the warm-up, each where the run has any."""
    for phase in (Phase.COLD, Phase.WARMUP):
        n, good = row(connection, f"count(*), count(*) FILTER ({OK})", in_phase(phase))
        if n:
            yield PhaseSummary(phase=phase, n=n, ok=good, ttft=_figure(connection, "TTFT", ttft, ok_in(phase)))
