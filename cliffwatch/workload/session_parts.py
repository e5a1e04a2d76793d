"""Sessions in a workload file: conversations of several turns, and the pauses between them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel
from cliffwatch.units import Number, Seconds
from cliffwatch.workload.parts import MAX_DURATION_S, Length, PositiveSeconds, TraceLength

MAX_TURNS = 1000
_PauseSeconds = Annotated[Seconds, Field(ge=0, le=MAX_DURATION_S)]


class FixedPause(ConfigModel):
    """Every pause is `value`."""

    kind: Literal["fixed"]
    value: _PauseSeconds


class ExponentialPause(ConfigModel):
    """Memoryless pauses of this mean."""

    kind: Literal["exponential"]
    mean: PositiveSeconds


class UniformPause(ConfigModel):
    """Any pause from min to max alike."""

    kind: Literal["uniform"]
    min: _PauseSeconds
    max: _PauseSeconds

    @field_validator("max")
    @classmethod
    def _ordered(cls, value: float, info: ValidationInfo) -> float:
        low = info.data.get("min")
        if low is not None and value < low:
            raise ValueError(f"is below min; allowed: at least {low:g}")
        return value


class LogNormalPause(ConfigModel):
    """exp(normal) about `median`; `sigma` is the deviation of the logarithm."""

    kind: Literal["lognormal"]
    median: PositiveSeconds
    sigma: Annotated[Number, Field(gt=0, le=5)]


def _plain_pause(value: Any) -> Any:
    return value if isinstance(value, dict | ConfigModel) else {"kind": "fixed", "value": value}


Pause: TypeAlias = Annotated[
    FixedPause | ExponentialPause | UniformPause | LogNormalPause,
    Field(discriminator="kind"),
    BeforeValidator(_plain_pause),
]


class Sessions(ConfigModel):
    """Conversations: each arrival starts one, and each turn sends everything said before it.

    `turns` is the number of requests of a session. `input_tokens` is what a turn after the first adds to the prompt,
    message and template around it; the workload's own `input_tokens` unless given. A turn is due `think_time` after
    the answer before it has ended.
    """

    turns: Length
    think_time: Pause = FixedPause(kind="fixed", value=0.0)
    input_tokens: Length | None = None
    history: Literal["grow"] = "grow"

    @field_validator("turns", "input_tokens")
    @classmethod
    def _drawn(cls, value: Length | None, info: ValidationInfo) -> Length | None:
        recorded = isinstance(value, TraceLength)
        if recorded:
            raise ValueError("cannot be a trace's; allowed: a length of another kind")
        if value is not None and info.field_name == "turns" and value.bounds[1] > MAX_TURNS:
            raise ValueError(f"go to {value.bounds[1]}; allowed: {MAX_TURNS} a session at most")
        return value
