"""What the API answers. Unknown is null, never 0 and never NaN; every figure stands beside the n it came from."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from cliffwatch.records.calibration import Calibration
from cliffwatch.records.manifest import Accounting, CheckResult, Cost, Reason, WorkerInfo
from cliffwatch.report.summary import ErrorCount, OutcomeCount
from cliffwatch.slo.judgement import Judgement


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Health(Answer):
    """The service runs and can list its folder."""

    status: str = Field(description="`ok`")
    version: str = Field(description="Version of cliffwatch.")


class RunItem(Answer):
    """One run as its manifest tells it."""

    id: str = Field(description="The run's folder name; the id in every other path.")
    state: str = Field(description="`running`, `complete`, `partial`, or `damaged` where the manifest is not readable.")
    problem: str | None = Field(description="What is wrong with a damaged run.")
    name: str | None = Field(description="Name of the workload.")
    verdict: str | None = Field(description="VALID, DEGRADED or INVALID; null until the run has ended.")
    partial_reason: str | None = Field(description="Why a partial run ended early.")
    created_unix_s: float | None = Field(description="When the run began, Unix seconds.")
    ended_unix_s: float | None = Field(description="When it ended; null while it runs.")
    live: bool = Field(description="Whether a worker on the service's machine is writing it now.")
    changed_unix_s: float = Field(description="The newest write to its files; an old one while `running` is suspect.")
    planned_duration_s: float | None = Field(description="Planned length, where the workload has one.")
    planned_requests: int | None = Field(description="Planned number of requests, where the workload has one.")
    load_s: float | None = Field(description="How long load was sent; null until the run has ended.")
    target: str | None = Field(description="The server under load.")
    model: str | None = Field(description="The model that was asked for.")
    engine: str | None = Field(description="The engine, where it was recognised.")
    issued: int | None = Field(description="Requests issued, every phase; null until the run has ended.")


class RunList(Answer):
    """The runs in the folder, newest first."""

    total: int = Field(description="How many runs the folder holds.")
    runs: list[RunItem] = Field(description="The newest of them, up to `limit`.")


class RunRows(Answer):
    """What can only be told by counting a run's rows."""

    rows: int = Field(description="Rows recorded so far.")
    phases: dict[str, int] = Field(description="Rows of each phase.")
    elapsed_s: float | None = Field(description="Time from zero to the last recorded end, seconds; null without rows.")


class RunDetail(RunItem, RunRows):
    """One run, with its rows counted and everything that says whether to trust it."""

    note: str | None = Field(description="`no data yet` for a run without rows.")
    open_loop: bool = Field(description="Whether requests were sent by the clock, whatever the server did.")
    seed: int
    schedule_hash: str = Field(description="SHA-256 of the schedule: equal hashes, equal traffic.")
    prompt_method: str = Field(description="How prompts were given their length.")
    accounting: Accounting | None = Field(
        description="issued = ok + failed + cancelled + late + lost; null while live."
    )
    reasons: list[Reason] = Field(description="The findings behind the verdict.")
    checks: list[CheckResult] = Field(description="Every check of trust that was made; empty until the run has ended.")
    calibration: Calibration | None = Field(
        description="The client's own error, where it was measured before the run; the last level is the run's."
    )
    warnings: list[str]
    workers: list[WorkerInfo]
    cost: Cost | None
    workload: dict[str, Any] = Field(description="The workload as it was run.")
    versions: dict[str, str]


class Attainment(Answer):
    """The run judged by its SLO file (or by the one that the service was started with)."""

    run: str
    note: str | None = Field(description="Why nothing is judged: no SLO file, or `no data yet`.")
    judgement: Judgement | None = Field(description="Null without an SLO file.")


class Percentile(Answer):
    """One percentile by linear interpolation."""

    p: float = Field(description="Between 0 and 1.")
    value: float | None = Field(description="Null with fewer than 1 / (1 - p) values.")
    few: bool = Field(description="Fewer than ceil(10 / (1 - p)) values: take it with care.")


class Percentiles(Answer):
    """The distribution of one metric over the successful requests of a phase."""

    run: str
    metric: str
    unit: str
    phase: str
    n: int = Field(description="Successful requests that have this figure.")
    mean: float | None
    least: float | None
    greatest: float | None
    percentiles: list[Percentile]
    note: str | None = Field(description="`no data yet` where n is 0.")


class Timeline(Answer):
    """A metric over the run, in bins of intended send time. All lists have one entry a bin."""

    run: str
    metric: str
    label: str
    unit: str
    phase: str
    width_s: float | None = Field(description="Width of a bin; null without rows.")
    start_s: list[float] = Field(description="Start of each bin, seconds since the run's zero.")
    p50: list[float | None] = Field(description="Null under 2 values.")
    p95: list[float | None] = Field(description="Null under 20 values.")
    counts: list[int] = Field(description="Successful requests that have the figure: the n of both percentiles.")
    requests: list[int] = Field(description="Requests due in the bin, whatever became of them.")
    failed: list[int] = Field(description="Those that the server failed.")
    not_served: list[int] = Field(description="Those cancelled, late or lost: no fault of the server.")
    note: str | None


class Outcomes(Answer):
    """How the requests of a phase ended."""

    run: str
    phase: str
    n: int
    outcomes: list[OutcomeCount] = Field(description="Most frequent first.")
    errors: list[ErrorCount] = Field(description="The most frequent error texts.")
    note: str | None


class MetricItem(Answer):
    """One figure of a request."""

    name: str = Field(description="As the parameter `metric` takes it.")
    label: str
    unit: str
    help: str


class DimensionItem(Answer):
    """One dimension of a request."""

    name: str = Field(description="As the parameters `rows`, `columns` and `facet` take it.")
    unit: str = Field(description="Empty for words.")
    help: str


class Choices(Answer):
    """What `metric`, `statistic` and the sides of a heatmap may be."""

    metrics: list[MetricItem]
    dimensions: list[DimensionItem]
    statistics: list[str] = Field(description="`attainment` needs a `threshold`.")
    hardware: list[str] = Field(description="What use of hardware can be asked for.")
    models: list[str] = Field(description="Models whose shape is known, likewise.")
    parts: list[str] = Field(description="Parts of a request's time, likewise.")
