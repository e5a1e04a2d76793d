"""`manifest.json`: what a run was, how it ended, and whether every request is accounted for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cliffwatch.errors import RunError
from cliffwatch.records.calibration import Calibration
from cliffwatch.records.clock import WorkerClock
from cliffwatch.records.health import Health
from cliffwatch.records.replicas import Replicas
from cliffwatch.records.schema import Outcome

FORMAT = 1
FILE_NAME = "manifest.json"


class RunState(StrEnum):
    """`partial` runs are valid as far as they go, and say so wherever they are shown."""

    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"


class VerdictState(StrEnum):
    """Whether the figures of a run may be trusted."""

    VALID = "VALID"
    DEGRADED = "DEGRADED"
    INVALID = "INVALID"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkerInfo(_Part):
    """One load worker: its shard and how it ended (`finished`, or `lost` when it died)."""

    shard: int
    host: str | None = None
    pid: int | None = None
    state: str
    rows: int
    health: Health | None = None  # None: nothing was heard of it
    clock: WorkerClock | None = None  # None: not known, or the master's own


class Accounting(_Part):
    """issued = ok + failed + cancelled + late + lost, exactly; `by_outcome` has every outcome that occurred."""

    issued: int
    ok: int
    failed: int
    cancelled: int
    late: int
    lost: int
    by_outcome: dict[Outcome, int]

    @property
    def balanced(self) -> bool:
        return self.issued == self.ok + self.failed + self.cancelled + self.late + self.lost


class Reason(_Part):
    """One finding about the trust in a run: what was measured, against which threshold."""

    check: str
    state: VerdictState
    message: str
    value: float | None = None
    threshold: float | None = None


class CheckResult(_Part):
    """One check, passed or not. `state` is None where it could not be made, and `message` says why.

    `threshold` is the one that was crossed; `degraded` and `invalid` are those of the check, from which a value is bad
    (or under which, where `below`). `n` is how many values are behind `value`.
    """

    check: str
    state: VerdictState | None
    message: str | None = None
    value: float | None = None
    unit: str = ""
    threshold: float | None = None
    degraded: float | None = None
    invalid: float | None = None
    below: bool = False
    n: int | None = None


class Verdict(_Part):
    """The worst state of its reasons; VALID when there are none. `checks` are all that were made."""

    state: VerdictState
    reasons: tuple[Reason, ...] = ()
    checks: tuple[CheckResult, ...] = ()


class Cost(_Part):
    """What the hardware under the target costs."""

    gpu_hour_usd: float
    gpus: float = 1


class Manifest(_Part):
    """The record of one run. Written with `state: running` at the start and replaced atomically at the end."""

    format: int = FORMAT
    run_id: str
    name: str
    state: RunState
    partial_reason: str | None = None
    created_unix_s: float
    t0_unix_ns: int
    ended_unix_s: float | None = None
    load_s: float | None = None  # time from zero to the last issued request's end
    target: str
    endpoint: str
    model: str
    engine: str | None = None
    open_loop: bool
    seed: int
    schedule_hash: str
    workload: dict[str, Any]
    planned_duration_s: float | None = None
    planned_requests: int | None = None
    workers: tuple[WorkerInfo, ...] = ()
    accounting: Accounting | None = None
    verdict: Verdict | None = None
    calibration: Calibration | None = None
    tightest_s: dict[str, float] = {}  # of the run's own SLO file: the shortest threshold on `ttft` and on `itl`
    replicas: Replicas | None = None  # None: nobody asked which replica answered
    prompt_method: str
    cost: Cost | None = None
    versions: dict[str, str] = {}
    host: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


def read_manifest(run_dir: Path) -> Manifest:
    """Read a run folder's manifest.

    Raises:
        RunError: no such folder, no manifest in it, or one that this version cannot read.
    """
    path = run_dir / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RunError("holds no run", file=run_dir, allowed=f"a folder with a {FILE_NAME}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot be read: {error}", file=path) from error
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        raise RunError(f"is damaged: {first['msg']}", file=path, field=field) from error
    if manifest.format != FORMAT:
        raise RunError("is of another version", file=path, field="format", value=manifest.format, allowed=str(FORMAT))
    return manifest


def write_manifest(run_dir: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically. Raises RunError where the folder cannot be written."""
    path = run_dir / FILE_NAME
    fresh = path.with_suffix(".json.new")
    try:
        fresh.write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise RunError(f"cannot be written: {error.strerror or error}", file=path) from error
