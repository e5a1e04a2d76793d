"""Composites: one budget of several objectives."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from cliffwatch.config import ConfigModel
from cliffwatch.slo.slices import Name, Target
from cliffwatch.units import Number

MAX_PARTS = 20


class Kind(StrEnum):
    """`weighted`: the weighted mean of the parts' shares of bad events. `any`: the part with the least budget left."""

    WEIGHTED = "weighted"
    ANY = "any"


def _a_weight(weight: float) -> float:
    if not 0 < weight <= 1e6:
        raise ValueError("must be above 0 and at most 1e6")
    return weight


def _several(names: tuple[str, ...]) -> tuple[str, ...]:
    if not 2 <= len(names) <= MAX_PARTS or len(set(names)) < len(names):
        raise ValueError(f"must be 2 to {MAX_PARTS} different objectives")
    return names


class Composite(ConfigModel):
    """One budget of several objectives, which are named as in their label `objective`.

    Attributes:
        target: share of good events, for weighted ones; `any` has the targets of its parts.
        weights: of the parts, in their order; alike where none are given.
    """

    name: Name
    kind: Kind = Kind.WEIGHTED
    of: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], AfterValidator(_several)]
    weights: tuple[Annotated[Number, AfterValidator(_a_weight)], ...] | None = None
    target: Target | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Composite:
        if self.kind is Kind.ANY and (self.target is not None or self.weights is not None):
            raise ValueError("kind any has neither target nor weights: each part has its own target")
        if self.kind is Kind.WEIGHTED and self.target is None:
            raise ValueError("kind weighted needs a target, such as 99%")
        if self.weights is not None and len(self.weights) != len(self.of):
            raise ValueError(f"has {len(self.weights)} weights for {len(self.of)} objectives; allowed: one for each")
        return self

    @property
    def shares(self) -> tuple[float, ...]:
        """A weight for each part."""
        return self.weights or (1.0,) * len(self.of)
