"""Alerts against incidents that people labelled: which alerts were right, which incidents were found, how soon."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from cliffwatch.config import ConfigModel, check_config, parse_config, read_config_text
from cliffwatch.errors import InputError
from cliffwatch.slo.backtest.replay import Firing
from cliffwatch.slo.backtest.times import parse_instant
from cliffwatch.stats.wilson import wilson

MAX_INCIDENTS = 10_000
_HEAD = "start,end,name"


def _written(value: object) -> float:
    """An instant of a file: `now` and `ago` would mean another time each day it is read."""
    return parse_instant(value, now_s=0.0)


Instant = Annotated[float, BeforeValidator(_written)]


class Incident(ConfigModel):
    """A time in which users suffered; both ends in Unix seconds, written as ISO 8601 or Unix seconds."""

    start: Instant
    end: Instant
    name: str = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _ordered(self) -> Incident:
        if self.end <= self.start:
            raise ValueError("end must be after start")
        return self


class Incidents(ConfigModel):
    """A file of incidents."""

    incidents: tuple[Incident, ...] = Field(min_length=1, max_length=MAX_INCIDENTS)


def load_incidents(path: Path) -> tuple[Incident, ...]:
    """Read incidents from YAML (`incidents: [{start, end, name}]`) or, where the name ends in .csv, from CSV with
    these columns. Raises InputError."""
    text = read_config_text(path)
    if path.suffix.lower() != ".csv":
        return parse_config(text, Incidents, source=str(path)).incidents
    reader = csv.DictReader(text.splitlines(), strict=True)
    try:
        rows: list[dict[str, Any]] = list(reader)
    except csv.Error as error:
        raise InputError(f"is no CSV: {error}", file=path, field=f"line {reader.line_num}") from error
    if ",".join(reader.fieldnames or ()) != _HEAD:
        raise InputError("has other columns", file=path, field="line 1", value=reader.fieldnames, allowed=_HEAD)
    if long := next((number for number, row in enumerate(rows, 2) if None in row), None):
        raise InputError("has more values than columns", file=path, field=f"line {long}", allowed=_HEAD)
    return check_config({"incidents": rows}, Incidents, source=str(path)).incidents


@dataclass(frozen=True, slots=True)
class Found:
    """An incident and the first alert that matches it; both None where none does.

    `delay_s`: from the incident's start to the alert's; negative where the alert came first.
    """

    incident: Incident
    alert: str | None
    delay_s: float | None


@dataclass(frozen=True, slots=True)
class Rate:
    """`hits` of `n`, and the 95 % Wilson interval; without any, all three are None."""

    hits: int
    n: int

    @property
    def value(self) -> float | None:
        return self.hits / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson(self.hits, self.n) if self.n else None


@dataclass(frozen=True, slots=True)
class Score:
    """How a set of alerts did against the incidents of a span.

    Attributes:
        precision: alerts that match an incident, of all alerts.
        recall: incidents that an alert matches, of all incidents.
    """

    precision: Rate
    recall: Rate
    found: tuple[Found, ...]


def score(firings: Sequence[Firing], incidents: Sequence[Incident], *, span_end_s: float, tolerance_s: float) -> Score:
    """Match alerts and incidents that overlap, the incident widened by the tolerance on both sides."""

    def match(one: Firing, incident: Incident) -> bool:
        end_s = span_end_s if one.end_s is None else one.end_s
        return one.start_s <= incident.end + tolerance_s and end_s >= incident.start - tolerance_s

    right = sum(any(match(one, incident) for incident in incidents) for one in firings)
    found = []
    for incident in incidents:
        first = min((one for one in firings if match(one, incident)), key=lambda one: one.start_s, default=None)
        found.append(
            Found(incident, None, None)
            if first is None
            else Found(incident, first.alert, first.start_s - incident.start)
        )
    return Score(Rate(right, len(firings)), Rate(sum(one.alert is not None for one in found), len(found)), tuple(found))


def within(incidents: Sequence[Incident], start_s: float, end_s: float) -> tuple[Incident, ...]:
    """Those that overlap the span: of others no alert can be expected."""
    return tuple(one for one in incidents if one.end >= start_s and one.start <= end_s)
