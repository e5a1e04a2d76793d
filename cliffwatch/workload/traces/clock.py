"""Times of a trace: date-times, or numbers in a unit that is known, certain, or asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Literal

from cliffwatch.errors import InputError
from cliffwatch.workload.traces.rows import RawRow, Repairs, refuse

Unit = Literal["s", "ms", "us", "ns"]
Clock = Callable[[RawRow], int]

_NS_PER: dict[Unit, int] = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
# Unix times of 2001 and later, which no time since a trace's start reaches: 1e9 s is 31 years.
_EPOCH: tuple[tuple[float, Unit], ...] = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (1e9, "s"))
_MOST = 10**20
_DATE = re.compile(r"\s*(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?\s*(Z|[+-]\d\d:?\d\d)?\s*", re.ASCII)
_SUFFIX = re.compile(r"(?:_|\(|\s)(s|sec|seconds|ms|us|ns)\)?\s*", re.IGNORECASE)
_ASK = "the unit, as time_unit: s or time_unit: ms"


def choose_clock(
    file: object, column: str, sample: Sequence[RawRow], repairs: Repairs, *, asked: Unit | None, usual: Unit | None
) -> Clock:
    """How to read the times of a file, told from its first rows.

    `asked` is the person's word, `usual` what the format documents. Raises InputError where neither is there and the
    numbers leave it open whether they are seconds or milliseconds, or where they contradict the format.
    """
    timed = [row for row in sample if not _missing(row.time)]
    if timed and isinstance(timed[0].time, str) and _DATE.fullmatch(timed[0].time):
        return lambda row: _date_ns(row, file, column)
    numbers = [_number(row, file, column) for row in timed]
    unit = asked or _certain(numbers, usual, repairs) or _documented(file, column, numbers, usual, repairs)
    factor = _NS_PER[unit]
    return lambda row: int((_number(row, file, column) * factor).to_integral_value())


def _missing(time: object) -> bool:
    return time is None or (isinstance(time, str) and not time.strip())


def _certain(numbers: Sequence[Decimal], usual: Unit | None, repairs: Repairs) -> Unit | None:
    """The unit of Unix times. Against a format's own only where that would be absurd: a finer one, not a coarser."""
    earliest = min(numbers, default=Decimal(0))
    unit = next((unit for least, unit in _EPOCH if earliest >= least), None)
    if unit is None or (usual is not None and _NS_PER[unit] > _NS_PER[usual]):
        return None
    if usual is not None and unit != usual:
        repairs.note(f"times are Unix times in {unit}, not in {usual} as this format has them")
    return unit


def _documented(file: object, column: str, numbers: Sequence[Decimal], usual: Unit | None, repairs: Repairs) -> Unit:
    fractions = any(number != number.to_integral_value() for number in numbers)
    if usual is not None:
        if usual == "ms" and fractions:
            raise InputError(
                "has fractions where this format counts whole milliseconds", file=file, field=column, allowed=_ASK
            )
        return usual
    if suffix := _SUFFIX.search(column):
        return {"sec": "s", "seconds": "s"}.get(suffix[1].lower(), suffix[1].lower())  # type: ignore[return-value]
    if not fractions:
        raise InputError("may be seconds or milliseconds: all are whole numbers", file=file, field=column, allowed=_ASK)
    repairs.note("times have fractions and no unit: taken as seconds")
    return "s"


def _number(row: RawRow, file: object, column: str) -> Decimal:
    try:
        number = Decimal(row.time if isinstance(row.time, int) else str(row.time).strip())
    except InvalidOperation:
        number = Decimal("nan")
    if isinstance(row.time, bool) or not number.is_finite() or not 0 <= number < _MOST:
        raise refuse(file, row.line, f"{column} is no time", value=row.time, allowed="a number from 0, or a date-time")
    return number


def _date_ns(row: RawRow, file: object, column: str) -> int:
    found = _DATE.fullmatch(row.time) if isinstance(row.time, str) else None
    try:
        if found is None:
            raise ValueError  # noqa: TRY301  the same answer as for a 31 February
        return _unix_s(found[1], found[3]) * 1_000_000_000 + int((found[2] or "").ljust(9, "0"))
    except ValueError as error:
        allowed = "a date-time such as 2023-11-16 18:17:03.9799600"
        raise refuse(file, row.line, f"{column} is no time", value=row.time, allowed=allowed) from error


@lru_cache(maxsize=64)
def _unix_s(text: str, zone: str | None) -> int:
    """Unix seconds; a date-time without a zone is taken as UTC (only differences matter)."""
    when = datetime.fromisoformat(text + (zone or ""))
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
