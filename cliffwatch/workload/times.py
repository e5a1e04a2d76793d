"""Lengths of time that are drawn: a kind and its parameters; `quantile` makes a time of a number in [0, 1)."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel
from cliffwatch.units import Number
from cliffwatch.workload.arrival_parts import NonNegativeSeconds
from cliffwatch.workload.parts import PositiveSeconds


class FixedTime(ConfigModel):
    """Always `value`."""

    kind: Literal["fixed"]
    value: NonNegativeSeconds

    def quantile(self, _share: float) -> float:
        return self.value


class UniformTime(ConfigModel):
    """Anything from min to max alike."""

    kind: Literal["uniform"]
    min: NonNegativeSeconds
    max: PositiveSeconds

    @field_validator("max")
    @classmethod
    def _ordered(cls, value: float, info: ValidationInfo) -> float:
        low = info.data.get("min")
        if low is not None and value < low:
            raise ValueError(f"is below min; allowed: at least {low:g} s")
        return value

    def quantile(self, share: float) -> float:
        return self.min + share * (self.max - self.min)


class ExponentialTime(ConfigModel):
    """Exponential about `mean`: as likely to leave in the next second, however long one has waited."""

    kind: Literal["exponential"]
    mean: PositiveSeconds

    def quantile(self, share: float) -> float:
        return -math.log1p(-share) * self.mean


class LogNormalTime(ConfigModel):
    """exp(normal) about `median`; `sigma` is the deviation of the logarithm."""

    kind: Literal["lognormal"]
    median: PositiveSeconds
    sigma: Annotated[Number, Field(gt=0, le=5)]

    def quantile(self, share: float) -> float:
        return self.median * math.exp(self.sigma * NormalDist().inv_cdf(max(share, 2**-53)))


Time: TypeAlias = Annotated[
    FixedTime | UniformTime | ExponentialTime | LogNormalTime,
    Field(discriminator="kind"),
]
