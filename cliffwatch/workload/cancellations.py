"""Users who leave before their answer is complete: which, and after how long."""

from __future__ import annotations

from typing import Literal

from cliffwatch.config import ConfigModel
from cliffwatch.units import Share
from cliffwatch.workload.chance import uniform
from cliffwatch.workload.parts import MAX_DURATION_S
from cliffwatch.workload.times import Time


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
