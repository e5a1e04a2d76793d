"""The workload file: what to send, how much of it, and when, as a frozen model that refuses what it cannot mean."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel, check_config, load_config, parse_config
from cliffwatch.cost.price import HardwareCost
from cliffwatch.errors import InputError
from cliffwatch.units import WholeNumber
from cliffwatch.workload.arrival_parts import Arrivals, ConcurrencyArrivals, SteadyArrivals
from cliffwatch.workload.curves import CURVES
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
    Sampling,
    Timeouts,
    Warmup,
)

__all__ = ["ConcurrencyArrivals", "Workload", "load_workload", "preset_names", "preset_text", "with_changes"]


class Workload(ConfigModel):
    """One workload file. Times in seconds, lengths in tokens a prompt, rates in requests a second."""

    name: Annotated[Line, Field(min_length=1, max_length=100)] = "workload"
    description: Annotated[Line, Field(max_length=2000)] = ""
    seed: Annotated[WholeNumber, Field(ge=0, lt=1 << 63)] = 42
    duration: PositiveSeconds | None = None
    requests: Annotated[WholeNumber, Field(ge=1, le=MAX_REQUESTS)] | None = Field(default=None, validate_default=True)
    arrivals: Arrivals
    input_tokens: Length = LogUniformLength(kind="loguniform", min=1024, max=32 * 1024)
    output_tokens: Length = LogNormalLength(kind="lognormal", median=128, sigma=0.8, min=8, max=512)
    batch: Batch = Batch()
    cache: Cache = Cache()
    cold_start: ColdStart = Field(default=ColdStart(), validate_default=True)
    warmup: Warmup = Warmup()
    max_lag: PositiveSeconds = 10.0
    endpoint: Literal["auto", "completions", "chat"] = "auto"
    model: Annotated[Line, Field(min_length=1, max_length=500)] | None = None
    timeouts: Timeouts = Timeouts()
    sampling: Sampling = Sampling()
    cost: HardwareCost | None = None

    @field_validator("requests")
    @classmethod
    def _ends(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is None and "duration" in info.data and info.data["duration"] is None:
            raise ValueError("is missing, and so is duration; allowed: one of the two, or both")
        return value

    @field_validator("arrivals")
    @classmethod
    def _within_a_month(cls, value: Any, info: ValidationInfo) -> Any:
        requests, duration = info.data.get("requests"), info.data.get("duration")
        if requests and not duration and requests > due_by(value, MAX_DURATION_S):
            raise ValueError(f"takes over 30 days for {requests} requests; allowed: a higher rate, or a duration")
        return value

    @field_validator("batch")
    @classmethod
    def _size_for_every_length(cls, value: Batch, info: ValidationInfo) -> Batch:
        lengths = info.data.get("input_tokens")
        if lengths is not None and value.sizes[0] > max(1, value.token_budget // lengths.bounds[1]):
            raise ValueError(
                f"has no size that a prompt of {lengths.bounds[1]} tokens may take; "
                "allowed: sizes with 1 among them, or a higher token_budget"
            )
        return value

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
    def _chat_is_single(cls, value: str, info: ValidationInfo) -> str:
        batch = info.data.get("batch")
        if value == "chat" and batch is not None and batch.sizes != (1,):
            raise ValueError("carries one prompt a request, batch.sizes has more; allowed: chat with batch.sizes [1]")
        return value

    @property
    def open_loop(self) -> bool:
        """Whether arrivals keep their own times, whatever the server does."""
        return self.users is None

    @property
    def rate(self) -> float | None:
        """Requests a second asked for, where it is one rate: None for rates that change, and in a closed loop."""
        return getattr(self.arrivals, "rate", None)

    @property
    def users(self) -> int | None:
        """Users of a closed loop; None in an open one."""
        return self.arrivals.users if isinstance(self.arrivals, ConcurrencyArrivals) else None

    def expected_requests(self, seconds: float) -> float | None:
        """Requests due by so many seconds; None in a closed loop."""
        return due_by(self.arrivals, seconds) if self.open_loop else None

    @property
    def planned_requests(self) -> int | None:
        """How many requests there will be, where only `requests` ends the load; None where time decides."""
        return self.requests if self.duration is None else None


def due_by(arrivals: Arrivals, seconds: float) -> float:
    """Requests due by so many seconds; without bound in a closed loop."""
    if isinstance(arrivals, ConcurrencyArrivals):
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
        InputError: no such file or preset, or a file that is not a workload; names field, value and what is allowed.
    """
    path = Path(path_or_preset)
    if path.is_dir() or not path.exists():
        if path_or_preset in preset_names():
            return parse_config(preset_text(path_or_preset), Workload, source=f"preset {path_or_preset}")
        if not path.exists():
            presets = ", ".join(preset_names())
            raise InputError("no such file", file=path_or_preset, allowed=f"a workload file, or a preset: {presets}")
    return load_config(path, Workload)


def with_changes(workload: Workload, *, source: str = "options", **changes: object) -> Workload:
    """The workload with some fields replaced, checked as a file would be. Raises InputError, with `source` for file."""
    return check_config({**workload.model_dump(exclude_unset=True), **changes}, Workload, source=source)
