"""A scheduler from a profile and options, and options changed while it runs."""

from __future__ import annotations

from typing import Any

from cliffwatch.errors import InputError
from services.engine.kv_cache import KvCache
from services.engine.memory import Window
from services.engine.options import EngineOptions
from services.engine.profile import Profile
from services.engine.scheduler import Limits, Scheduler
from services.engine.speculation import Speculation
from services.engine.step_time import StepTime
from services.engine.tokenizer import BLOCK_TOKENS


def assemble(profile: Profile, options: EngineOptions, *, seed: int = 0) -> Scheduler:
    """An idle scheduler; `seed` is of what it draws. Raises InputError where the profile cannot do what is asked."""
    model_length(profile, options)
    kv = KvCache(
        profile.limits.kv_cache_tokens // BLOCK_TOKENS, sharing=options.prefix_caching, eviction=options.eviction
    )
    window = Window(options.sliding_window, options.attention_sinks) if options.sliding_window else None
    speculation = None
    if options.draft_acceptance_rate is not None:
        speculation = Speculation(options.num_speculative_tokens, options.draft_acceptance_rate, seed)
    return Scheduler(
        _limits(profile, options), kv, _step_time(profile, options), window=window, speculation=speculation
    )


class Tuned:
    """A scheduler that runs, and the options that it obeys."""

    def __init__(self, profile: Profile, options: EngineOptions, *, seed: int = 0) -> None:
        self.scheduler = assemble(profile, options, seed=seed)
        self.options = options
        self._profile = profile

    def change(self, changes: dict[str, Any]) -> None:
        """Other options, by their names; the next step obeys them. Raises InputError, and then nothing is changed."""
        options = self.options.changed(changes)
        limits, step_time = _limits(self._profile, options), _step_time(self._profile, options)
        self.scheduler.obey(limits, step_time)
        self.scheduler.kv.evict_by(options.eviction)
        self.options = options


def model_length(profile: Profile, options: EngineOptions) -> int:
    """Tokens of the longest prompt and answer. Raises InputError for more than the cache holds."""
    length = options.max_model_len or profile.limits.max_model_len
    room = profile.limits.kv_cache_tokens
    if length > room:
        allowed = f"2 to {room}, what the profile's cache holds"
        raise InputError("is out of range", field="--max-model-len", value=length, allowed=allowed)
    return length


def _limits(profile: Profile, options: EngineOptions) -> Limits:
    token_budget = options.max_num_batched_tokens or profile.limits.token_budget
    if token_budget <= options.num_speculative_tokens:
        raise InputError(
            "a step has no room for a draft and its last token", field="--max-num-batched-tokens", value=token_budget,
            allowed=f"above {options.num_speculative_tokens}, the tokens of a draft",
        )  # fmt: skip
    return Limits(
        token_budget=token_budget,
        max_sequences=options.max_num_seqs or profile.limits.max_num_seqs,
        chunked_prefill=options.chunked_prefill,
        by_priority=options.scheduling_policy == "priority",
        max_unfinished=options.max_num_queued_reqs,
        max_queued_tokens=options.max_num_queued_tokens,
    )


def _step_time(profile: Profile, options: EngineOptions) -> StepTime:
    if not options.enforce_eager:
        return profile.step_time
    if not profile.step_time.eager_launch_s:
        raise InputError(
            f"profile {profile.name} does not say how long launching takes",
            field="--enforce-eager", allowed="a profile with step_time.eager_launch_s",
        )  # fmt: skip
    return profile.step_time.model_copy(update={"cuda_graphs": False})
