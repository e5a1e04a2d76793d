"""Schedulers in simulated time, with step times that are easy to add up."""

from __future__ import annotations

from typing import Any

from services.engine.kv_cache import KvCache
from services.engine.memory import Window
from services.engine.scheduler import Limits, Scheduler
from services.engine.speculation import Speculation
from services.engine.step_time import StepTime

TIMES = StepTime(
    decode_base_s=1.0,
    decode_sequence_s=0.1,
    context_token_s=0.01,
    repeated_token_s=0.001,
    prefill_floor_s=2.0,
    prefill_token_s=0.1,
    attention_pair_s=0.001,
)
# A step takes exactly 1 s, whatever is in it.
STEADY = StepTime(**(dict.fromkeys(StepTime.model_fields, 0.0) | {"decode_base_s": 1.0, "prefill_floor_s": 1.0}))


def scheduler(
    times: StepTime = TIMES,
    *,
    budget: int = 64,
    places: int = 8,
    blocks: int = 100,
    sharing: bool = True,
    window: Window | None = None,
    speculation: Speculation | None = None,
    **limits: Any,
) -> Scheduler:
    """One that is idle: `budget` tokens a step, `places` for sequences, `blocks` of cache; further `Limits`."""
    return Scheduler(
        Limits(budget, places, **limits),
        KvCache(blocks, sharing=sharing),
        times,
        window=window,
        speculation=speculation,
    )
