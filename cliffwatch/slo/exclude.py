"""What no budget is charged for: maintenance, traffic of load tests, engines put to sleep."""

from __future__ import annotations

import re
from datetime import datetime
from math import floor
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, model_validator

from cliffwatch.config import ConfigModel

WEEK_S = 7 * 86_400
MAX_MAINTENANCE = 50
_MONDAY_S = 4 * 86_400  # 5 January 1970 was the first Monday
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKLY = re.compile(r"(\w{3})\s+([01]\d|2[0-3]):([0-5]\d)\s*-\s*([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
WEEKLY_FORMS = "a day and two times in UTC, such as sun 02:00-04:00"

Label = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=100)]
Value = Annotated[str, Field(min_length=1, max_length=500)]
Values = Annotated[tuple[Value, ...], Field(min_length=1, max_length=1000)]


def _written(moment: object) -> object:
    if isinstance(moment, str | datetime):
        return moment
    # a bare 2026 would be a second of 1970
    raise ValueError('must be a date and time with its zone, in quotes, such as "2026-12-24T22:00:00Z"')


def _weekly(text: str) -> str:
    match = _WEEKLY.fullmatch(text.strip())
    if match is None or match[1].lower() not in _DAYS:
        raise ValueError(f"must be {WEEKLY_FORMS}")
    if match.group(2, 3) == match.group(4, 5):
        raise ValueError("has no length; allowed: an end after its start (or of the next day)")
    return text.strip()


Moment = Annotated[AwareDatetime, BeforeValidator(_written)]


class Maintenance(ConfigModel):
    """A time that is excluded: once, from `start` until `end`, or `weekly`; in UTC."""

    start: Moment | None = None
    end: Moment | None = None
    weekly: Annotated[str, AfterValidator(_weekly)] | None = None

    @model_validator(mode="after")
    def _once_or_weekly(self) -> Maintenance:
        once = self.start is not None and self.end is not None
        if once == (self.weekly is not None) or (not once and (self.start or self.end)):
            raise ValueError(f"needs start and end, or weekly; allowed: start and end with zone, or {WEEKLY_FORMS}")
        if self.start is not None and self.end is not None and not self.start < self.end:
            raise ValueError(f"ends at {self.end.isoformat()}, not after its start")
        return self

    @property
    def starts_s(self) -> int:
        """Unix time of its start; of a weekly one, that of its first ever."""
        if self.weekly is None:
            return _unix_s(self.start)
        day, hour, minute = self._parts[:3]
        return _MONDAY_S + day * 86_400 + hour * 3600 + minute * 60

    @property
    def lasts_s(self) -> int:
        """Its length; a weekly one may go past midnight."""
        if self.weekly is None:
            return _unix_s(self.end) - _unix_s(self.start)
        _, hour, minute, until_hour, until_minute = self._parts
        return ((until_hour - hour) * 3600 + (until_minute - minute) * 60) % 86_400

    @property
    def _parts(self) -> tuple[int, int, int, int, int]:
        match = _WEEKLY.fullmatch(self.weekly or "")
        assert match is not None  # noqa: S101  checked when it was read
        hour, minute, until_hour, until_minute = (int(match[group]) for group in (2, 3, 4, 5))
        return _DAYS.index(match[1].lower()), hour, minute, until_hour, until_minute


def _unix_s(moment: datetime | None) -> int:
    assert moment is not None  # noqa: S101  checked when it was read
    return floor(moment.timestamp())


def _few(windows: tuple[Maintenance, ...]) -> tuple[Maintenance, ...]:
    if len(windows) > MAX_MAINTENANCE:
        raise ValueError(f"must be a list of up to {MAX_MAINTENANCE} windows; drop those that are past")
    return windows


class Exclude(ConfigModel):
    """Events that are in neither side of any ratio.

    Attributes:
        labels: series whose label has one of these values, such as the run ids of load tests.
        sleeping: those of engines that were put to sleep, where the engine tells.
    """

    maintenance: Annotated[tuple[Maintenance, ...], AfterValidator(_few)] = ()
    labels: dict[Label, Values] = Field(default_factory=dict)
    sleeping: bool = False
