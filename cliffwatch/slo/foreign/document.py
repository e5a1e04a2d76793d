"""What foreign SLO files have in common: keys that nobody here knows are told, and a promise is two rates in PromQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from cliffwatch.slo.slices import STRING, WINDOW, Ranged, Target
from cliffwatch.units import parse_share

_TEMPLATE = re.compile(r"\{\{-?\s*\.window\s*-?\}\}")  # Go's
_RANGE = re.compile(r"\[\s*(?:\d+(?:ms|[smhdwy]))+\s*\]")
_COUNT = re.compile(r"\b(?:increase|delta|idelta|irate)\s*\(")
_SELECTOR = re.compile(r"\s*(?:[a-zA-Z_:][a-zA-Z0-9_:]*\s*(?:\{[^{}]*\})?|\{[^{}]*\})\s*")


class ForeignModel(BaseModel):
    """Base of what is read from foreign files: keys without a field are kept aside, to be told."""

    model_config = ConfigDict(extra="allow", frozen=True)


def not_kept(model: BaseModel, place: str = "") -> Iterator[str]:
    """Keys of a foreign file that have no field, by their place."""
    yield from (f"{place}{key}" for key in model.model_extra or {})
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from not_kept(value, f"{place}{name}.")
        elif isinstance(value, tuple):
            for number, one in enumerate(value):
                if isinstance(one, BaseModel):
                    yield from not_kept(one, f"{place}{name}[{number}].")


@dataclass(frozen=True, slots=True)
class Pledge:
    """One promise of a foreign file: `all_of_them` and `bad` are rates with every range as `[{window}]`."""

    name: str
    target: float
    all_of_them: str
    bad: str
    slices: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A foreign file in our terms.

    Attributes:
        period: `period` or `calendar`, as a `watch` has them.
        notes: what its reader should know.
    """

    name: str
    pledges: tuple[Pledge, ...]
    description: str = ""
    period: dict[str, Any] = field(default_factory=dict)
    group_by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def outside_strings(text: str, pattern: re.Pattern[str], by: str) -> str:
    """Replace a pattern, but not within PromQL's strings."""
    parts, at = [], 0
    for string in STRING.finditer(text):
        parts += [pattern.sub(lambda _: by, text[at : string.start()]), string[0]]
        at = string.end()
    return "".join((*parts, pattern.sub(lambda _: by, text[at:])))


def with_window(query: object) -> object:
    """A query with its window's template, or else its one fixed range, as `[{window}]`. Raises ValueError."""
    if not isinstance(query, str):
        return query
    if found := _COUNT.search(STRING.sub('""', query)):
        raise ValueError(f"uses {found[0]}...), which is no rate of events; allowed: rate(...), the same ratio")
    text = _TEMPLATE.sub(lambda _: WINDOW, query.strip())
    return text if WINDOW in text else outside_strings(text, _RANGE, f"[{WINDOW}]")


def rate_of(selector: object) -> object:
    """The rate of a counter that stands as a bare selector; other queries as they are."""
    return f"rate({selector.strip()}[{WINDOW}])" if isinstance(selector, str) and is_selector(selector) else selector


def is_selector(text: str) -> bool:
    """Whether it is a metric, or some series of one, and no expression."""
    return _SELECTOR.fullmatch(STRING.sub('""', text)) is not None


def _percent(value: object) -> object:
    try:
        return parse_share(f"{value}%")
    except ValueError as error:
        raise ValueError("must be percent, above 0 and below 100, such as 99.9") from error


def refuse_keys(data: object, refused: Mapping[str, str]) -> object:
    """What a model is to be read from, as it is. Raises ValueError for a key that cannot be taken, with the reason."""
    if isinstance(data, dict):
        for key, why in refused.items():
            if data.get(key) is not None:
                raise ValueError(f"{key} cannot be taken: {why}")
    return data


def some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A check of its own: pydantic reports a list as too short wherever one element is wrong. Raises ValueError."""
    if not values:
        raise ValueError("must be a list of one or more")
    return values


Query = Annotated[Ranged, BeforeValidator(with_window)]
Percent = Annotated[Target, BeforeValidator(_percent)]
