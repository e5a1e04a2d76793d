"""The workload file: what to send, how much of it, and when, as frozen models that refuse what they cannot mean."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel, check_config, load_config, parse_config
from cliffwatch.cost.price import HardwareCost
from cliffwatch.errors import InputError
from cliffwatch.units import Number, Seconds, Share, TokenCount, WholeNumber

MAX_TOKENS = 1 << 24  # of one prompt; a hundred times the longest context on offer
MAX_REQUESTS = 1_000_000_000
MAX_DURATION_S = 30 * 86_400.0  # times stay far inside what a double holds to the nanosecond


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds a control character; allowed: one line of text")
    return text


Line = Annotated[str, AfterValidator(_one_line)]
Tokens = Annotated[TokenCount, Field(ge=1, le=MAX_TOKENS)]
PositiveSeconds = Annotated[Seconds, Field(gt=0, le=MAX_DURATION_S)]
Rate = Annotated[Number, Field(ge=0.001, le=1_000_000)]


class ConstantArrivals(ConfigModel):
    """Open loop: arrival k at k / rate."""

    kind: Literal["constant"]
    rate: Rate


class PoissonArrivals(ConfigModel):
    """Open loop: independent exponential gaps of mean 1 / rate, as many independent callers make."""

    kind: Literal["poisson"]
    rate: Rate


class ConcurrencyArrivals(ConfigModel):
    """Closed loop: each of `users` sends its next request when the last one ended."""

    kind: Literal["concurrency"]
    users: Annotated[WholeNumber, Field(ge=1, le=100_000)]


Arrivals: TypeAlias = Annotated[ConstantArrivals | PoissonArrivals | ConcurrencyArrivals, Field(discriminator="kind")]


class FixedLength(ConfigModel):
    """Every length is `value`."""

    kind: Literal["fixed"]
    value: Tokens

    @property
    def bounds(self) -> tuple[int, int]:
        return self.value, self.value


class _Range(ConfigModel):
    min: Tokens
    max: Tokens

    @field_validator("max")
    @classmethod
    def _ordered(cls, value: int, info: ValidationInfo) -> int:
        low = info.data.get("min")
        if low is not None and value < low:
            raise ValueError(f"is below min; allowed: at least {low}")
        return value

    @property
    def bounds(self) -> tuple[int, int]:
        return self.min, self.max


class UniformLength(_Range):
    """Every whole number from min to max alike."""

    kind: Literal["uniform"]


class LogUniformLength(_Range):
    """Every doubling of the length alike: as many prompts from 1k to 2k as from 16k to 32k."""

    kind: Literal["loguniform"]


class LogNormalLength(_Range):
    """exp(normal) about `median`; `sigma` is the deviation of the logarithm; lengths outside take the bound."""

    kind: Literal["lognormal"]
    median: Tokens
    sigma: Annotated[Number, Field(gt=0, le=5)]

    @field_validator("median")
    @classmethod
    def _inside(cls, value: int, info: ValidationInfo) -> int:
        low, high = info.data.get("min"), info.data.get("max")
        if low is not None and high is not None and not low <= value <= high:
            raise ValueError(f"is outside min to max; allowed: {low} to {high}")
        return value


class EmpiricalLength(ConfigModel):
    """The given lengths, drawn by their weights (all alike where none are given)."""

    kind: Literal["empirical"]
    values: Annotated[tuple[Tokens, ...], Field(min_length=1)]
    weights: tuple[Annotated[Number, Field(ge=0)], ...] | None = None

    @field_validator("weights")
    @classmethod
    def _one_each(cls, value: tuple[float, ...] | None, info: ValidationInfo) -> tuple[float, ...] | None:
        values = info.data.get("values")
        if value is None or values is None:
            return value
        if len(value) != len(values):
            raise ValueError(f"has {len(value)} entries; allowed: one for each of the {len(values)} values")
        if sum(value) <= 0:
            raise ValueError("are all zero; allowed: at least one above zero")
        return value

    @property
    def bounds(self) -> tuple[int, int]:
        return min(self.values), max(self.values)


Length: TypeAlias = Annotated[
    FixedLength | UniformLength | LogUniformLength | LogNormalLength | EmpiricalLength, Field(discriminator="kind")
]


class Batch(ConfigModel):
    """How many prompts one request carries; the rule is in `cliffwatch.workload.batches`."""

    sizes: Annotated[tuple[Annotated[WholeNumber, Field(ge=1, le=4096)], ...], Field(min_length=1, max_length=64)] = (
        1,
        2,
        4,
        8,
        16,
    )
    token_budget: Tokens = 16 * 1024
    falloff: Annotated[Number, Field(ge=0, le=100)] = 1.0

    @field_validator("sizes")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) != len(value):
            raise ValueError("names a size twice; allowed: each size once")
        return tuple(sorted(value))


class Cache(ConfigModel):
    """Shared prefixes: of `prefix_share` of the requests the first `prefix_fraction` is that of one of `groups`."""

    prefix_share: Share = 0.0
    prefix_fraction: Share = 0.8
    groups: Annotated[WholeNumber, Field(ge=1, le=1_000_000)] = 8


class Warmup(ConfigModel):
    """The first part of the load, by time or by count (after the cold start): sent and recorded, not judged."""

    duration: Annotated[Seconds, Field(ge=0, le=MAX_DURATION_S)] = 0.0
    requests: Annotated[WholeNumber, Field(ge=0, le=MAX_REQUESTS)] = 0

    @field_validator("requests")
    @classmethod
    def _one_rule(cls, value: int, info: ValidationInfo) -> int:
        if value and info.data.get("duration"):
            raise ValueError("stands beside duration; allowed: one of the two")
        return value


class ColdStart(ConfigModel):
    """The first requests after the start of the load, reported apart."""

    requests: Annotated[WholeNumber, Field(ge=0, le=MAX_REQUESTS)] = 1


class Timeouts(ConfigModel):
    """Deadlines of one request: to connect, to its first token, between tokens, and over all."""

    connect: PositiveSeconds = 10.0
    first_token: PositiveSeconds = 120.0
    stall: PositiveSeconds = 30.0
    total: PositiveSeconds = 600.0


class Sampling(ConfigModel):
    """Sampling parameters; a null one is not sent. `ignore_eos`, where known, fixes the answer's length."""

    temperature: Annotated[Number, Field(ge=0, le=2)] | None = 0.0
    top_p: Annotated[Number, Field(gt=0, le=1)] | None = None
    ignore_eos: bool | None = True

    def parameters(self) -> dict[str, object]:
        """What goes into the request's JSON."""
        return self.model_dump(exclude_none=True)


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
        if requests and not duration and requests > getattr(value, "rate", requests) * MAX_DURATION_S:
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
        """Requests a second asked for; None in a closed loop, where the server decides."""
        return None if isinstance(self.arrivals, ConcurrencyArrivals) else self.arrivals.rate

    @property
    def users(self) -> int | None:
        """Users of a closed loop; None in an open one."""
        return self.arrivals.users if isinstance(self.arrivals, ConcurrencyArrivals) else None

    @property
    def planned_requests(self) -> int | None:
        """How many requests there will be, where only `requests` ends the load; None where time decides."""
        return self.requests if self.duration is None else None


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
