"""What requests and tokens cost, from the time the hardware was really held.

All figures are the same money seen over different counts: `usd_per_million_output_tokens` is the whole cost over the
output tokens alone, so the figures do not add up to one another.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from cliffwatch.config import ConfigModel
from cliffwatch.cost.work import Work
from cliffwatch.units import Number

SECONDS_PER_HOUR = 3600.0
MILLION = 1_000_000


class HardwareCost(ConfigModel):
    """The price of one GPU for an hour in US dollars, and how many GPUs serve the target."""

    gpu_hour_usd: Number = Field(gt=0, le=1e6)
    gpus: Number = Field(default=1, gt=0, le=1e6)


class Price(BaseModel):
    """Cost of a run's judged part. A figure that has no denominator is null, and `undefined` says why.

    Attributes:
        work: what was paid for: successful requests and their tokens. What failed is paid for by them.
        usd: held seconds times GPUs times the hourly price / 3600; null where nothing has ended.
    """

    model_config = ConfigDict(frozen=True)

    gpu_hour_usd: float
    gpus: float
    work: Work
    usd: float | None
    usd_per_request: float | None
    usd_per_million_input_tokens: float | None
    usd_per_million_output_tokens: float | None
    undefined: dict[str, str] = {}


def cost_usd(seconds: float, cost: HardwareCost) -> float:
    """Money for holding the hardware for `seconds`: 1.28 s of one GPU at 1.92 USD/h is 0.000683 USD."""
    return seconds * cost.gpus * cost.gpu_hour_usd / SECONDS_PER_HOUR


def price(cost: HardwareCost, work: Work) -> Price:
    """Price the work done; an unknown count (None) is not 0 and gives no figure."""
    usd = None if work.held_s is None else cost_usd(work.held_s, cost)
    undefined: dict[str, str] = {}

    def per(name: str, what: str, amount: int | None, scale: int = 1) -> float | None:
        if amount and usd is not None:
            return usd * scale / amount
        undefined[name] = (
            "no request has ended" if usd is None else f"{what} not known" if amount is None else f"no {what}"
        )
        return None

    return Price(
        gpu_hour_usd=cost.gpu_hour_usd,
        gpus=cost.gpus,
        work=work,
        usd=usd,
        usd_per_request=per("usd_per_request", "successful requests", work.requests),
        usd_per_million_input_tokens=per("usd_per_million_input_tokens", "input tokens", work.input_tokens, MILLION),
        usd_per_million_output_tokens=per(
            "usd_per_million_output_tokens", "output tokens", work.output_tokens, MILLION
        ),
        undefined=undefined,
    )
