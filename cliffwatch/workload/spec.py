"""The workload file: what to send, how much of it, and when, as a frozen model that refuses what it cannot mean."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel, check_config, load_config, parse_config, read_config_text
from cliffwatch.cost.price import HardwareCost
from cliffwatch.errors import InputError
from cliffwatch.stream import DIALECTS
from cliffwatch.units import WholeNumber
from cliffwatch.workload.arrival_parts import Arrivals, ConcurrencyArrivals, SteadyArrivals, TraceArrivals
from cliffwatch.workload.cancellations import Cancellations
from cliffwatch.workload.curves import CURVES
from cliffwatch.workload.mix_parts import Models, Priorities, Tenants
from cliffwatch.workload.parts import (
    MAX_DURATION_S,
    MAX_REQUESTS,
    Batch,
    Cache,
    ColdStart,
    Length,
    Line,
    LogNormalLength,
    LogUniformLength,
    PositiveSeconds,
    Timeouts,
    TraceLength,
    Warmup,
)
from cliffwatch.workload.retries import Retries
from cliffwatch.workload.sampling import Sampling
from cliffwatch.workload.session_parts import Sessions
from cliffwatch.workload.traces.replay import anchored

__all__ = ["ConcurrencyArrivals", "Workload", "load_workload", "preset_names", "preset_text", "with_changes"]

LONG_TAIL = LogUniformLength(kind="loguniform", min=1024, max=32 * 1024)
CHAT = "chat"
AUTO = "auto"  # chat for single prompts, completions for batches
ENDPOINTS = (AUTO, *DIALECTS)
SHORT_ANSWERS = LogNormalLength(kind="lognormal", median=128, sigma=0.8, min=8, max=512)


class Workload(ConfigModel):
    """One workload file. Times in seconds, lengths in tokens a prompt, rates in requests a second."""

    name: Annotated[Line, Field(min_length=1, max_length=100)] = "workload"
    description: Annotated[Line, Field(max_length=2000)] = ""
    seed: Annotated[WholeNumber, Field(ge=0, lt=1 << 63)] = 42
    arrivals: Arrivals
    duration: PositiveSeconds | None = None
    requests: Annotated[WholeNumber, Field(ge=1, le=MAX_REQUESTS)] | None = Field(default=None, validate_default=True)
    input_tokens: Length = Field(default=cast("Length", None), validate_default=True)
    output_tokens: Length = Field(default=cast("Length", None), validate_default=True)
    sessions: Sessions | None = None
    batch: Batch = Field(default=cast("Batch", None), validate_default=True)
    cache: Cache = Cache()
    cold_start: ColdStart = Field(default=cast("ColdStart", None), validate_default=True)
    warmup: Warmup = Warmup()
    max_lag: PositiveSeconds = 10.0
    endpoint: str = AUTO
    model: Annotated[Line, Field(min_length=1, max_length=500)] | None = None
    models: Models | None = None
    tenants: Tenants | None = None
    priority: Priorities | None = None
    timeouts: Timeouts = Timeouts()
    retries: Retries | None = None
    cancellations: Cancellations | None = None
    sampling: Sampling = Sampling()
    cost: HardwareCost | None = None

    @field_validator("requests")
    @classmethod
    def _ends(cls, value: int | None, info: ValidationInfo) -> int | None:
        arrivals, duration = info.data.get("arrivals"), info.data.get("duration")
        if arrivals is None or "duration" not in info.data or isinstance(arrivals, TraceArrivals):
            return value
        if value is None and duration is None:
            raise ValueError("is missing, and so is duration; allowed: one of the two, or both")
        if value and not duration and value > due_by(arrivals, MAX_DURATION_S):
            raise ValueError("take over 30 days at these arrivals; allowed: fewer, a higher rate, or a duration")
        return value

    @field_validator("input_tokens", "output_tokens", mode="before")
    @classmethod
    def _usual_lengths(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None:
            return value
        if isinstance(info.data.get("arrivals"), TraceArrivals):
            return TraceLength(kind="trace")
        return LONG_TAIL if info.field_name == "input_tokens" else SHORT_ANSWERS

    @field_validator("input_tokens", "output_tokens")
    @classmethod
    def _recorded(cls, value: Length, info: ValidationInfo) -> Length:
        arrivals = info.data.get("arrivals")
        if isinstance(value, TraceLength) and arrivals is not None and not isinstance(arrivals, TraceArrivals):
            raise ValueError(f"are a trace's, arrivals are {arrivals.kind}; allowed: with arrivals of kind trace")
        return value

    @field_validator("sessions")
    @classmethod
    def _begin_by_arrivals(cls, value: Sessions | None, info: ValidationInfo) -> Sessions | None:
        if value is not None and isinstance(info.data.get("arrivals"), TraceArrivals):
            raise ValueError("cannot begin by a trace, which has every request; allowed: arrivals of another kind")
        return value

    @field_validator("batch", mode="before")
    @classmethod
    def _usual_batch(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None:
            return value
        single = isinstance(info.data.get("input_tokens"), TraceLength) or info.data.get("sessions") is not None
        return Batch(sizes=(1,)) if single else Batch()

    @field_validator("batch")
    @classmethod
    def _size_for_every_length(cls, value: Batch, info: ValidationInfo) -> Batch:
        lengths = info.data.get("input_tokens")
        if isinstance(lengths, TraceLength) and value.sizes != (1,):
            raise ValueError("would send a recorded prompt several times; allowed: sizes [1] with a trace's lengths")
        if info.data.get("sessions") is not None and value.sizes != (1,):
            raise ValueError("has several prompts a request; allowed: sizes [1] with sessions")
        if lengths is not None and value.sizes[0] > max(1, value.token_budget // lengths.bounds[1]):
            raise ValueError(
                f"has no size that a prompt of {lengths.bounds[1]} tokens may take; "
                "allowed: sizes with 1 among them, or a higher token_budget"
            )
        return value

    @field_validator("cold_start", mode="before")
    @classmethod
    def _usual_cold_start(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None:
            return value
        return ColdStart(requests=0) if info.data.get("requests") == 1 else ColdStart()

    @field_validator("cold_start")
    @classmethod
    def _cold_leaves_some(cls, value: ColdStart, info: ValidationInfo) -> ColdStart:
        requests = info.data.get("requests")
        if requests is not None and value.requests >= requests:
            raise ValueError(f"leaves none of {requests} requests to measure; allowed: cold_start.requests below that")
        return value

    @field_validator("warmup")
    @classmethod
    def _warmup_leaves_some(cls, value: Warmup, info: ValidationInfo) -> Warmup:
        requests, duration, cold = (info.data.get(key) for key in ("requests", "duration", "cold_start"))
        if duration is not None and value.duration >= duration:
            raise ValueError(f"is as long as the whole load; allowed: a warm-up shorter than {duration:g} s")
        if requests is not None and cold is not None and value.requests + cold.requests >= requests:
            raise ValueError(f"and cold start leave none of {requests} requests to measure; allowed: fewer than that")
        return value

    @field_validator("endpoint")
    @classmethod
    def _takes_these_requests(cls, value: str, info: ValidationInfo) -> str:
        if value not in ENDPOINTS:
            raise ValueError(f"unknown; allowed: {', '.join(ENDPOINTS)}")
        batch = info.data.get("batch")
        if value != AUTO and not DIALECTS[value].batches and batch is not None and batch.sizes != (1,):
            raise ValueError(
                f"carries one prompt a request, batch.sizes has more; allowed: {value} with batch.sizes [1]"
            )
        if value not in {AUTO, CHAT} and info.data.get("sessions") is not None:
            raise ValueError(f"has no conversations; allowed: {CHAT} with sessions")
        return value

    @field_validator("models")
    @classmethod
    def _one_way_to_name_them(cls, value: Models | None, info: ValidationInfo) -> Models | None:
        if value is not None and info.data.get("model") is not None:
            raise ValueError("stand beside model; allowed: one of the two")
        return value

    @property
    def open_loop(self) -> bool:
        """Whether arrivals keep their own times, whatever the server does."""
        return self.users is None

    @property
    def rate(self) -> float | None:
        """Requests a second asked for, where it is one rate: None for rates that change, in a closed loop, and for
        sessions, whose later turns wait for answers."""
        return None if self.sessions is not None else getattr(self.arrivals, "rate", None)

    @property
    def users(self) -> int | None:
        """Users of a closed loop; None in an open one."""
        return self.arrivals.users if isinstance(self.arrivals, ConcurrencyArrivals) else None

    def expected_requests(self, seconds: float) -> float | None:
        """Requests due by so many seconds; None in a closed loop, for sessions, and for a trace (it has to be read)."""
        return None if self.sessions is not None else self.expected_arrivals(seconds)

    def expected_arrivals(self, seconds: float) -> float | None:
        """Requests, or sessions, due to begin by so many seconds; None in a closed loop, and for a trace."""
        due = due_by(self.arrivals, seconds)
        return due if math.isfinite(due) else None

    @property
    def planned_requests(self) -> int | None:
        """How many requests there will be, where only `requests` ends the load; None where time or a trace decides."""
        return None if self.duration is not None or isinstance(self.arrivals, TraceArrivals) else self.requests


def due_by(arrivals: Arrivals, seconds: float) -> float:
    """Requests due by so many seconds; without bound where the server or a trace decides."""
    if isinstance(arrivals, ConcurrencyArrivals | TraceArrivals):
        return math.inf
    if isinstance(arrivals, SteadyArrivals):
        return arrivals.rate * seconds
    return float(CURVES[arrivals.kind](arrivals).expected(np.array([seconds]))[0])


PRESETS = resources.files("cliffwatch.workload") / "presets"


def preset_names() -> list[str]:
    """Names that `load_workload` knows without a file."""
    return sorted(entry.name.removesuffix(".yaml") for entry in PRESETS.iterdir() if entry.name.endswith(".yaml"))


def preset_text(name: str) -> str:
    """The YAML of a preset. Raises InputError for a name that is none."""
    if name not in preset_names():
        raise InputError("is no preset", file=name, allowed=", ".join(preset_names()))
    return (PRESETS / f"{name}.yaml").read_text(encoding="utf-8")


def load_workload(path_or_preset: str) -> Workload:
    """The workload in a file or, where there is no such file, of a preset such as `longtail`.

    Raises:
        InputError: no such file or preset, a file that is not a workload, or a trace of it that is none; names field,
            value and what is allowed.
    """
    path = Path(path_or_preset)
    if _means_preset(path_or_preset):
        return parse_config(preset_text(path_or_preset), Workload, source=f"preset {path_or_preset}")
    if not path.exists():
        presets = ", ".join(preset_names())
        raise InputError("no such file", file=path_or_preset, allowed=f"a workload file, or a preset: {presets}")
    workload = load_config(path, Workload)
    if not isinstance(workload.arrivals, TraceArrivals):
        return workload
    arrivals = anchored(workload.arrivals, path.absolute().parent)
    return workload.model_copy(update={"arrivals": arrivals})


def workload_text(path_or_preset: str) -> str:
    """The text of what `load_workload` loads, as a run folder keeps it. Raises InputError."""
    if _means_preset(path_or_preset):
        return preset_text(path_or_preset)
    return read_config_text(Path(path_or_preset))


def _means_preset(name: str) -> bool:
    """Whether a preset is meant: a file of that name goes before it."""
    return name in preset_names() and (Path(name).is_dir() or not Path(name).exists())


def with_changes(workload: Workload, *, source: str = "options", **changes: object) -> Workload:
    """The workload with some fields replaced, checked as a file would be. Raises InputError, with `source` for file."""
    return check_config({**workload.model_dump(exclude_unset=True), **changes}, Workload, source=source)
