"""Sessions in a workload file: conversations of several turns, and the pauses between them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel
from cliffwatch.workload.parts import Length, TraceLength
from cliffwatch.workload.times import FixedTime, Time

MAX_TURNS = 1000


def _plain_time(value: Any) -> Any:
    return value if isinstance(value, dict | ConfigModel) else {"kind": "fixed", "value": value}


class Sessions(ConfigModel):
    """Conversations: each arrival starts one, and each turn sends everything said before it.

    `turns` is the number of requests of a session. `input_tokens` is what a turn after the first adds to the prompt,
    message and template around it; the workload's own `input_tokens` unless given. A turn is due `think_time` after
    the answer before it has ended.
    """

    turns: Length
    think_time: Annotated[Time, BeforeValidator(_plain_time)] = FixedTime(kind="fixed", value=0.0)
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
