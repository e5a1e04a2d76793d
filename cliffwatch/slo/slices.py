"""Promises about time: what each slice of it must hold, and PromQL of one's own as an indicator."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from cliffwatch.config import ConfigModel
from cliffwatch.units import Number, Seconds, Share, WholeNumber, format_seconds

WINDOW = "{window}"
STRING = re.compile(r"""(?s)"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`""")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_QUANTILE = re.compile(r"\bquantile\s*=~?|\b(?:histogram_quantile|quantile_over_time|quantile)\b")


def reachable(share: float) -> float:
    """A share that leaves a budget. Raises ValueError."""
    if not 0 < share < 1:
        raise ValueError("must be above 0 % and below 100 % (a target of 100 % leaves no budget for any miss)")
    return share


def slice_length(seconds: float) -> float:
    """Seconds that a slice may be long. Raises ValueError."""
    if not 300 <= seconds <= 3600 or seconds % 60:
        raise ValueError("must be whole minutes, 5m to 1h")
    return seconds


def _a_rate(tokens_per_s: float) -> float:
    if not 0 < tokens_per_s <= 1e9:
        raise ValueError("must be above 0 tokens/s and at most 1e9")
    return tokens_per_s


def _ranged(expression: str) -> str:
    found, ranged = expression.count(WINDOW), expression.count(f"[{WINDOW}]")
    if not found or found != ranged:
        raise ValueError(f"must be PromQL with every range as [{WINDOW}], such as sum(rate(requests_total[{WINDOW}]))")
    if trick := _QUANTILE.search(expression):
        raise ValueError(f"reads quantiles ({trick[0]}), which hold no count of events; allowed: rates of counters")
    if not _stands_alone(expression):
        raise ValueError("has brackets or quotes that do not pair, or a comment; allowed: PromQL that stands by itself")
    return expression


def _stands_alone(expression: str) -> bool:
    """Whether it stays one operand within brackets: it closes what it opened, and hides nothing that follows."""
    open_now: list[str] = []
    for sign in STRING.sub("", expression.replace(f"[{WINDOW}]", "")):
        if sign in _PAIRS.values():
            open_now.append(sign)
        elif sign in "\"'`#" or (sign in _PAIRS and (not open_now or open_now.pop() != _PAIRS[sign])):
            return False
    return not open_now


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
Target = Annotated[Share, AfterValidator(reachable)]
Ranged = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_ranged)]


class Slices(ConfigModel):
    """Slices of time, each good or bad as a whole; the objective's target is of the slices.

    Attributes:
        length: of a slice, seconds.
        share: a slice is good when at least this share of its events is.
        tokens_per_s: for throughput: good when a group generated at least as many.
        min_events: slices with fewer events are neither good nor bad.
    """

    length: Annotated[Seconds, AfterValidator(slice_length)]
    share: Target | None = None
    tokens_per_s: Annotated[Number, AfterValidator(_a_rate)] | None = None
    min_events: Annotated[WholeNumber, Field(ge=1, le=1_000_000)] = 1

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        """`slices: 5m` for `slices: {length: 5m}`."""
        return data if isinstance(data, dict) else {"length": data}

    @property
    def text(self) -> str:
        """Such as `for 95 % in slices of 5 min`."""
        what = f" for {self.share * 100:.7g} %" if self.share is not None else ""
        least = f" ≥ {self.tokens_per_s:g} tokens/s" if self.tokens_per_s is not None else ""
        return f"{least}{what} in slices of {format_seconds(self.length)}"


class Promql(ConfigModel):
    """Two rates in PromQL, of all events and of the bad ones. Both are summed by the file's `group_by`, which bounds
    their series whatever labels they have."""

    all: Ranged
    bad: Ranged
