"""The part of a workload file that says when requests go out: one model a kind of arrivals."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel
from cliffwatch.units import Number, Seconds, TokenCount, WholeNumber
from cliffwatch.workload.parts import MAX_DURATION_S, Line, PositiveSeconds, Rate

RateOrZero = Annotated[Number, Field(ge=0, le=1_000_000)]
Burstiness = Annotated[Number, Field(ge=0.01, le=1000)]
Name = Annotated[Line, Field(min_length=1, max_length=4096)]
NonNegativeSeconds = Annotated[Seconds, Field(ge=0, le=MAX_DURATION_S)]


class ConstantArrivals(ConfigModel):
    """Open loop: arrival k at k / rate."""

    kind: Literal["constant"]
    rate: Rate


class PoissonArrivals(ConfigModel):
    """Open loop: independent exponential gaps of mean 1 / rate, as many independent callers make."""

    kind: Literal["poisson"]
    rate: Rate


class GammaArrivals(ConfigModel):
    """Open loop: independent gamma gaps of mean 1 / rate and CV 1 / sqrt(burstiness): below 1 bursts, above 1 evens."""

    kind: Literal["gamma"]
    rate: Rate
    burstiness: Burstiness


class _Modulated(ConfigModel):
    """A rate that changes with time, arrivals scattered about it at random or spaced evenly.

    At random is Poisson, unless `burstiness` says otherwise: as for gamma arrivals, on a clock that runs with the rate.
    """

    spacing: Literal["random", "even"] = "random"
    burstiness: Burstiness | None = None

    @field_validator("burstiness")
    @classmethod
    def _of_random(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("spacing") == "even":
            raise ValueError("has no meaning where arrivals are spaced evenly; allowed: with spacing random")
        return value


class RampArrivals(_Modulated):
    """Open loop: the rate goes from `start_rate` to `end_rate` within `over` and stays there.

    Linear starts at 0 unless told; steps are `stages` equal parts of `over`, each of one rate, at equal distances from
    `start_rate` (end_rate / stages unless told) to `end_rate`.
    """

    kind: Literal["ramp"]
    shape: Literal["linear", "geometric", "steps"] = "linear"
    end_rate: Rate
    start_rate: Annotated[RateOrZero | None, Field(validate_default=True)] = None
    over: PositiveSeconds
    stages: Annotated[Annotated[WholeNumber, Field(ge=2, le=1000)] | None, Field(validate_default=True)] = None

    @field_validator("start_rate")
    @classmethod
    def _geometric_has_a_start(cls, value: float | None, info: ValidationInfo) -> float | None:
        if info.data.get("shape") == "geometric" and (value is None or value < 0.001):
            raise ValueError("cannot be left out or near zero in a geometric ramp; allowed: 0.001 at least")
        return value

    @field_validator("stages")
    @classmethod
    def _of_steps(cls, value: int | None, info: ValidationInfo) -> int | None:
        shape = info.data.get("shape")
        if shape == "steps" and value is None:
            raise ValueError("is missing; allowed: the number of steps, 2 at least")
        if shape in {"linear", "geometric"} and value is not None:
            raise ValueError(f"has no meaning in a {shape} ramp; allowed: shape steps")
        return value

    @property
    def stage_rates(self) -> tuple[float, ...]:
        """Requests a second of each step; none for the other shapes. Fractions are kept as they are."""
        if self.stages is None:
            return ()
        start = self.end_rate / self.stages if self.start_rate is None else self.start_rate
        return tuple(start + (self.end_rate - start) * step / (self.stages - 1) for step in range(self.stages))


class DiurnalArrivals(_Modulated):
    """Open loop: a sinusoid between `low` and `high` of the given period, highest at `peak` (half a period in)."""

    kind: Literal["diurnal"]
    low: RateOrZero
    high: Rate
    period: PositiveSeconds = 86_400.0
    peak: NonNegativeSeconds | None = None

    @field_validator("high")
    @classmethod
    def _above_low(cls, value: float, info: ValidationInfo) -> float:
        low = info.data.get("low")
        if low is not None and value < low:
            raise ValueError(f"is below low; allowed: at least {low:g}")
        return value


class BurstArrivals(_Modulated):
    """Open loop: `on_rate` for `on`, then `off_rate` for `off`, over and over."""

    kind: Literal["bursts"]
    on: PositiveSeconds
    off: PositiveSeconds
    on_rate: Rate
    off_rate: RateOrZero = 0.0


class CurvePoint(ConfigModel):
    """A rate at a time since the start."""

    at: NonNegativeSeconds
    rate: RateOrZero


class CurveArrivals(_Modulated):
    """Open loop: the rate goes through `points`, in straight lines or in steps, and stays at the last one.

    With `repeat` it starts over after so long. Before the first point the rate is that of the first point.
    """

    kind: Literal["curve"]
    interpolate: Literal["linear", "steps"] = "linear"
    points: Annotated[tuple[CurvePoint, ...], Field(min_length=1, max_length=10_000)]
    repeat: PositiveSeconds | None = None

    @field_validator("points")
    @classmethod
    def _rising(cls, value: tuple[CurvePoint, ...]) -> tuple[CurvePoint, ...]:
        for before, after in pairwise(value):
            if after.at <= before.at:
                raise ValueError(f"have {after.at:g} s after {before.at:g} s; allowed: times that rise")
        if not any(point.rate for point in value):
            raise ValueError("have no rate above zero; allowed: one at least")
        return value

    @field_validator("repeat")
    @classmethod
    def _after_the_last(cls, value: float | None, info: ValidationInfo) -> float | None:
        points = info.data.get("points")
        if value is not None and points and value <= points[-1].at:
            raise ValueError(f"is not after the last point; allowed: above {points[-1].at:g} s")
        return value


class ConcurrencyArrivals(ConfigModel):
    """Closed loop: each of `users` sends its next request when the last one ended.

    It waits `think_time` after an end (the same each time, or exponential about it), and at least `pacing` from start
    to start. The rules are in `cliffwatch.workload.closed`.
    """

    kind: Literal["concurrency"]
    users: Annotated[WholeNumber, Field(ge=1, le=100_000)]
    think_time: NonNegativeSeconds = 0.0
    think: Literal["fixed", "exponential"] = "fixed"
    pacing: NonNegativeSeconds = 0.0


class TraceColumns(ConfigModel):
    """Which columns of a plain trace (JSON: keys) are what; those left out go by their usual names."""

    time: Name | None = None
    input: Name | None = None
    output: Name | None = None
    blocks: Name | None = None


class TraceArrivals(ConfigModel):
    """Open loop: the requests of a recorded trace at their times, each once and in order.

    `start` and `end` cut a slice out of the trace's own time, counted from its first request; `time_scale` stretches
    the times (0.5: twice as fast); `rate_scale` is how often each request is sent (0.5: half of them, by chance;
    2: each twice, the second halfway to the next one's time).
    """

    kind: Literal["trace"]
    file: Name
    format: Literal["auto", "azure", "burstgpt", "mooncake", "bailian", "servegen", "plain"] = "auto"
    columns: TraceColumns | None = None
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    block_tokens: Annotated[TokenCount, Field(ge=1, le=1 << 20)] | None = None
    time_scale: Annotated[Number, Field(ge=1e-6, le=1e6)] = 1.0
    rate_scale: Annotated[Number, Field(ge=1e-6, le=1000)] = 1.0
    start: NonNegativeSeconds = 0.0
    end: PositiveSeconds | None = None

    @field_validator("columns")
    @classmethod
    def _of_plain(cls, value: TraceColumns | None, info: ValidationInfo) -> TraceColumns | None:
        if value is not None and info.data.get("format") not in {"auto", "plain", None}:
            raise ValueError(f"are known in format {info.data['format']}; allowed: with format plain")
        return value

    @field_validator("end")
    @classmethod
    def _after_start(cls, value: float | None, info: ValidationInfo) -> float | None:
        start = info.data.get("start")
        if value is not None and start is not None and value <= start:
            raise ValueError(f"is not after start; allowed: above {start:g} s")
        return value


ModulatedArrivals: TypeAlias = RampArrivals | DiurnalArrivals | BurstArrivals | CurveArrivals
SteadyArrivals: TypeAlias = ConstantArrivals | PoissonArrivals | GammaArrivals
Arrivals: TypeAlias = Annotated[
    SteadyArrivals | ModulatedArrivals | TraceArrivals | ConcurrencyArrivals,
    Field(discriminator="kind"),
]
