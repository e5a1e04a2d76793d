"""What a client does about a refusal: which outcomes it tries again, how long it waits before, when it gives up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from cliffwatch.config import ConfigModel
from cliffwatch.records.schema import Outcome
from cliffwatch.units import Number, Share, WholeNumber
from cliffwatch.workload.chance import uniform
from cliffwatch.workload.parts import PositiveSeconds

Retried = Literal["http_429", "http_503", "http_5xx", "connect", "timeout_connect", "timeout_first_token"]
_SERVICE_UNAVAILABLE = 503


class Backoff(ConfigModel):
    """The wait after failure k: base x factor^(k - 1), at most max, less a random part of up to `jitter`."""

    base: PositiveSeconds = 0.5
    factor: Annotated[Number, Field(ge=1, le=100)] = 2.0
    max: Annotated[PositiveSeconds, Field(validate_default=True)] = 30.0
    jitter: Share = 0.5

    @field_validator("max")
    @classmethod
    def _above_base(cls, value: float, info: ValidationInfo) -> float:
        base = info.data.get("base")
        if base is not None and value < base:
            raise ValueError(f"is below base; allowed: at least {base:g} s")
        return value

    def longest_s(self) -> Iterator[float]:
        """The waits after the first failure, the second and so on, without their random part."""
        wait_s = self.base
        while True:  # factor^(k - 1) would overflow long before it mattered
            yield wait_s
            wait_s = min(self.max, wait_s * self.factor)


class Retries(ConfigModel):
    """When a request is tried again. `attempts` counts the first; `budget` is one deadline over all of them.

    The budget counts from the first send and is `timeouts.total` unless given.
    """

    attempts: Annotated[WholeNumber, Field(ge=2, le=1000)] = 3
    budget: PositiveSeconds | None = None
    on: Annotated[tuple[Retried, ...], Field(min_length=1, max_length=6)] = ("http_429", "http_503", "connect")
    backoff: Backoff = Backoff()

    def covers(self, outcome: Outcome, status: int | None) -> bool:
        """Whether a request that ended so is tried again."""
        return outcome.value in self.on or (status == _SERVICE_UNAVAILABLE and "http_503" in self.on)

    def wait_s(self, seed: int, request_id: int, failures: int, retry_after_s: float | None = None) -> float | None:
        """Seconds to wait after so many failures (1 or more); None where no attempt is left.

        What the server asked for in Retry-After is waited exactly, in place of the backoff.
        """
        if failures >= self.attempts:
            return None
        if retry_after_s is not None:
            return retry_after_s
        longest_s = next(islice(self.backoff.longest_s(), failures - 1, None))
        return longest_s * (1 - self.backoff.jitter * uniform(seed, "retry", request_id, failures))
