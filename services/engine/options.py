"""How the engine schedules: one record for serving, for simulating and for changing a running engine.

A field is all that an option needs: the commands take it as `--its-name`, `POST /admin/options` as a key of its JSON.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import Field, model_validator
from pydantic.fields import FieldInfo

from cliffwatch.config import ConfigModel, check_config
from cliffwatch.errors import InputError
from cliffwatch.units import Share, TokenCount
from services.engine.eviction import EvictionName


def _option(default: Any, says: str, *, live: bool = False, **bounds: Any) -> Any:
    """A field; `live` ones can be changed while the engine runs."""
    return Field(default, description=says, json_schema_extra={"live": live}, **bounds)


class EngineOptions(ConfigModel):
    """Options of the scheduler; None takes the profile's, or stands for no limit."""

    max_model_len: Annotated[TokenCount, Field(ge=2)] | None = _option(
        None, "Longest prompt and answer together, in tokens (such as 40k)."
    )
    max_num_seqs: int | None = _option(None, "Sequences in one batch.", live=True, ge=1)
    max_num_batched_tokens: Annotated[TokenCount, Field(ge=1)] | None = _option(
        None, "Tokens in one step (such as 8k).", live=True
    )
    chunked_prefill: bool = _option(
        True, "Cut prompts to the step's tokens; without it prompts go whole, and decoding waits for them.", live=True
    )
    scheduling_policy: Literal["fcfs", "priority"] = _option(
        "fcfs", "Order of the queue: as they come, or by each request's priority (lower is sooner).", live=True
    )
    max_num_queued_reqs: int | None = _option(
        None, "Sequences that may wait or run; past it requests are refused.", live=True, ge=0
    )
    max_num_queued_tokens: Annotated[TokenCount, Field(ge=0)] | None = _option(
        None, "Tokens of prompts that are not computed yet, at which requests are refused.", live=True
    )
    prefix_caching: bool = _option(True, "Share the cache of equal prompt beginnings.")
    eviction: EvictionName = _option(
        "lru", "Cached blocks that go first: least recently (lru) or least frequently used (lfu).", live=True
    )
    sliding_window: Annotated[TokenCount, Field(ge=1)] | None = _option(
        None, "Tokens back that attention reads, and the cache keeps; without it all of them."
    )
    attention_sinks: int = _option(
        0, "First tokens that attention reads besides --sliding-window (streaming attention).", ge=0
    )
    num_speculative_tokens: int = _option(
        0, "Tokens drafted for each sequence and step (speculative decoding); 0 drafts none.", ge=0, le=64
    )
    draft_acceptance_rate: Share | None = _option(
        None, "Chance that a drafted token is accepted, if those before it were (such as 70%)."
    )
    enforce_eager: bool = _option(False, "No CUDA graphs: the host launches every kernel.", live=True)

    @model_validator(mode="after")
    def _together(self) -> EngineOptions:
        """What does not go together."""
        if self.attention_sinks and self.sliding_window is None:
            raise ValueError("attention sinks are beside a window; allowed: with a sliding window")
        if self.sliding_window is not None and self.prefix_caching:
            raise ValueError("prompts share no cache of which windows give back parts; allowed: no prefix caching")
        if bool(self.num_speculative_tokens) != (self.draft_acceptance_rate is not None):
            raise ValueError(
                "drafts need their length and their acceptance rate; allowed: both num_speculative_tokens above 0 and "
                "draft_acceptance_rate, or neither"
            )
        return self

    def changed(self, changes: dict[str, Any]) -> EngineOptions:
        """These options with some changed while the engine runs. Raises InputError."""
        for name in changes:
            if name in type(self).model_fields and name not in LIVE:
                raise InputError(
                    "cannot be changed while the engine runs", field=name, value=changes[name], allowed=", ".join(LIVE)
                )
        return _read({**self.model_dump(), **changes}, str)


def _live(field: FieldInfo) -> bool:
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra["live"])


LIVE = tuple(name for name, field in EngineOptions.model_fields.items() if _live(field))


def takes_engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `options` an option of the command line for each field of `EngineOptions` instead."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "options"]
    fields = EngineOptions.model_fields
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[_typed(field), typer.Option(help=field.description)],
        )
        for name, field in fields.items()
    ]

    def with_options(**given: Any) -> None:
        options = _read({name: given.pop(name) for name in fields}, lambda name: "--" + name.replace("_", "-"))
        command(**given, options=options)

    with_options.__doc__ = command.__doc__
    with_options.__name__ = command.__name__
    with_options.__signature__ = signature.replace(  # type: ignore[attr-defined]  # what typer reads
        parameters=[parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own] + added
    )
    return with_options


def _typed(field: FieldInfo) -> Any:
    """What the command line reads: text where a quantity is written with its unit."""
    parts = [part for part in get_args(field.annotation) if part is not type(None)]
    if any(get_origin(part) is Annotated for part in parts):
        return str | None
    return field.annotation


def _read(given: dict[str, Any], called: Callable[[str], str]) -> EngineOptions:
    """Checked options; an error names a field as it is `called`. Raises InputError."""
    try:
        return check_config(given, EngineOptions, source="options")
    except InputError as error:
        field, value = (called(error.field), error.value) if error.field else (None, None)
        raise InputError(error.message, field=field, value=value, allowed=error.allowed) from error
