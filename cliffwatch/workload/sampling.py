"""Sampling parameters: what goes into a request's JSON beside what its dialect writes itself."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator

from cliffwatch.config import ConfigModel
from cliffwatch.stream import DIALECTS
from cliffwatch.units import Number, WholeNumber

_MAX_TEXT = 1000
# Written by the dialects, drawn by the workload, or changing how many answers come and how they are framed.
RESERVED = frozenset().union(*(dialect.own_fields for dialect in DIALECTS.values())) | {
    "best_of",
    "echo",
    "max_completion_tokens",
    "n",
    "priority",
}


def _scalar(value: Any) -> Any:
    plain = isinstance(value, bool | int | float | str)
    if not plain or (isinstance(value, float) and not math.isfinite(value)) or len(str(value)) > _MAX_TEXT:
        raise ValueError("is no plain JSON value; allowed: text, a finite number, true or false")
    return value


Text = Annotated[str, Field(min_length=1, max_length=_MAX_TEXT)]
Penalty = Annotated[Number, Field(ge=-2, le=2)]


class Sampling(ConfigModel):
    """Sampling parameters; a null one is not sent. `ignore_eos`, where known, fixes the answer's length.

    `extra` holds an engine's own ones, sent as they are.
    """

    temperature: Annotated[Number, Field(ge=0, le=2)] | None = 0.0
    top_p: Annotated[Number, Field(gt=0, le=1)] | None = None
    ignore_eos: bool | None = True
    top_k: Annotated[WholeNumber, Field(ge=-1, lt=1 << 31)] | None = None
    min_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    seed: Annotated[WholeNumber, Field(ge=0, lt=1 << 32)] | None = None
    stop: Annotated[tuple[Text, ...], Field(min_length=1, max_length=16)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[Number, Field(gt=0, le=10)] | None = None
    extra: Annotated[dict[Text, Annotated[Any, AfterValidator(_scalar)]], Field(max_length=64)] = Field(
        default_factory=dict
    )

    @field_validator("extra")
    @classmethod
    def _leaves_ours(cls, value: dict[str, object]) -> dict[str, object]:
        for name in value:
            if name in RESERVED:
                raise ValueError(f"would replace {name}, which is not for sampling; allowed: other names")
            if name in cls.model_fields:
                raise ValueError(f"holds {name}; allowed: {name} beside extra, not in it")
        return value

    def parameters(self) -> dict[str, object]:
        """What goes into the request's JSON, by its OpenAI and vLLM names."""
        return {**self.model_dump(exclude_none=True, exclude={"extra"}), **self.extra}
