"""What every trace is read into, and what was set right in it on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from cliffwatch.errors import InputError
from cliffwatch.workload.parts import MAX_TOKENS

_MOST = 1 << 62


class RawRow(NamedTuple):
    """One request as the file has it: its time in whatever clock that is, None where it is missing."""

    line: int
    time: str | float | None
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


class TraceRow(NamedTuple):
    """One request. `time_ns` counts from the first request; `blocks` are the ids of its prompt's blocks, in order."""

    time_ns: int
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Repair:
    """What was set right, how often, and the first line of it (None where it is about the whole file)."""

    what: str
    count: int
    first_line: int | None


@dataclass
class Repairs:
    """Counts of what was set right while reading."""

    _found: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def note(self, what: str, line: int | None = None) -> None:
        count, first = self._found.get(what, (0, line))
        self._found[what] = count + 1, first

    def __iter__(self) -> Iterator[Repair]:
        return (Repair(what, count, first) for what, (count, first) in self._found.items())


def refuse(file: object, line: int, message: str, *, value: object = None, allowed: str | None = None) -> InputError:
    """The error of a line whose meaning is not certain."""
    return InputError(message, file=file, field=f"line {line}", value=value, allowed=allowed)


def whole_tokens(value: Any, name: str, *, file: object, line: int, repairs: Repairs) -> int:
    """A number of tokens from a JSON number or CSV text. Raises InputError unless it is whole, from 0 to MAX_TOKENS."""
    if type(value) is int:
        tokens = value
    elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        tokens = int(value)
    else:
        tokens = _whole(value, name, file, line)
        repairs.note(f"{name} was written as a fraction or with blanks, and is whole", line)
    if not 0 <= tokens <= MAX_TOKENS:
        raise refuse(file, line, f"{name} is out of range", value=value, allowed=f"0 to {MAX_TOKENS} tokens")
    return tokens


def _whole(value: Any, name: str, file: object, line: int) -> int:
    allowed = "a whole number of tokens"
    if value is None or (isinstance(value, str) and not value.strip()):
        raise refuse(file, line, f"{name} is missing", allowed=allowed)
    number = None
    if isinstance(value, str | float):
        try:
            number = Decimal(str(value).strip())
        except InvalidOperation:
            number = None
    if number is None or not number.is_finite() or not -_MOST < number < _MOST or number != number.to_integral_value():
        raise refuse(file, line, f"{name} is not a number of tokens", value=value, allowed=allowed)
    return int(number)
