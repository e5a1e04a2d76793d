"""Users who leave before their answer is complete: which, and after how long."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel
from cliffwatch.units import Number, Share
from cliffwatch.workload.arrival_parts import NonNegativeSeconds
from cliffwatch.workload.chance import uniform
from cliffwatch.workload.parts import MAX_DURATION_S, PositiveSeconds


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


class Cancellations(ConfigModel):
    """A `share` of the requests whose users leave `after` a time drawn for each: since its first token, or its send."""

    share: Share
    after: Time
    since: Literal["first_token", "send"] = "first_token"

    def after_s(self, seed: int, request_id: int) -> float | None:
        """When the user of a request leaves, in seconds; None for one who stays. The same on any worker."""
        if uniform(seed, "cancel", request_id) >= self.share:
            return None
        return min(self.after.quantile(uniform(seed, "cancel after", request_id)), MAX_DURATION_S)
