"""The parts of a workload file but for its arrivals: lengths, batches, cache, phases, deadlines."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel
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


class TraceLength(ConfigModel):
    """Each request's own length, as its trace recorded it."""

    kind: Literal["trace"]

    @property
    def bounds(self) -> tuple[int, int]:
        return 1, MAX_TOKENS


Length: TypeAlias = Annotated[
    FixedLength | UniformLength | LogUniformLength | LogNormalLength | EmpiricalLength | TraceLength,
    Field(discriminator="kind"),
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
