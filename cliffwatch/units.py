"""Quantities as people write them in files and options: `250ms`, `16k`, `95%`.

Each `parse_*` accepts a number or text and raises `ValueError` with the allowed forms; each annotated type
(`Seconds`, `TokenCount`, `Share`, `Number`, `WholeNumber`) does the same inside a pydantic model. A bare number is
seconds, tokens, or a share between 0 and 1. True and false are never numbers.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

_SECONDS_PER = {
    unit: Decimal(size)
    for unit, size in (("us", "1e-6"), ("ms", "1e-3"), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400))
}
_TOKENS_PER = {"": 1, "k": 1024}
# Bounded in length, so that no text can make decimal arithmetic overflow or take long.
_QUANTITY = re.compile(
    r"\s*([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[+-]?\d{1,3})?)\s*([a-z%]*)\s*", re.ASCII | re.IGNORECASE
)

# unit, its size in seconds, and the length from which the next unit is shown
_SHOWN = (("µs", 1e-6, 1e-3), ("ms", 1e-3, 1.0), ("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 3.6e6))

_RANGES = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))

DURATION_FORMS = "a number of seconds or text such as 250ms, 2s, 5m, 1h, 30d"
TOKEN_FORMS = "a whole number of tokens or text such as 512, 1k, 32k (k = 1024)"
SHARE_FORMS = "a number between 0 and 1 or text such as 95%"
NUMBER_FORMS = "a number"
WHOLE_FORMS = "a whole number"


def _split(value: object, forms: str) -> tuple[str, str]:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError(f"must be {forms}")  # noqa: TRY004  pydantic turns ValueError into a field error
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        raise ValueError(f"must be {forms}")
    return match[1], match[2]


def parse_seconds(value: object) -> float:
    """Seconds from `2.5`, `"250ms"`, `"30d"`; exact in decimal, so 13 ms is 0.013. Raises ValueError on anything else,
    infinities included."""
    number, unit = _split(value, DURATION_FORMS)
    factor = _SECONDS_PER.get(unit or "s")
    seconds = math.inf if factor is None else float(Decimal(number) * factor)
    if not math.isfinite(seconds):
        raise ValueError(f"must be {DURATION_FORMS}")
    return seconds


def parse_tokens(value: object) -> int:
    """Tokens from `512`, `"32k"` (k = 1024, as engines count). Raises ValueError unless the result is whole."""
    number, unit = _split(value, TOKEN_FORMS)
    factor = _TOKENS_PER.get(unit.lower())
    if factor is None or (tokens := Decimal(number) * factor) != tokens.to_integral_value() or tokens > 2**31:
        raise ValueError(f"must be {TOKEN_FORMS}")
    return int(tokens)


def parse_share(value: object) -> float:
    """A share in [0, 1] from `0.95` or `"95%"`; exact in decimal, so 99.9 % is 0.999. Raises ValueError."""
    number, unit = _split(value, SHARE_FORMS)
    share = Decimal(number) / 100 if unit == "%" else Decimal(number)
    if unit not in {"", "%"} or not 0 <= share <= 1:
        raise ValueError(f"must be {SHARE_FORMS}")
    return float(share)


def parse_number(value: object) -> float:
    """A finite number without a unit. Raises ValueError."""
    number, unit = _split(value, NUMBER_FORMS)
    if unit or not math.isfinite(float(number)):
        raise ValueError(f"must be {NUMBER_FORMS}")
    return float(number)


def parse_whole(value: object) -> int:
    """A whole number without a unit (`1e6` is one). Raises ValueError."""
    number, unit = _split(value, WHOLE_FORMS)
    exact = Decimal(number)
    if unit or abs(exact) > 2**63 or exact != exact.to_integral_value():
        raise ValueError(f"must be {WHOLE_FORMS}")
    return int(exact)


def format_seconds(seconds: float | None) -> str:
    """A length of time for people: `–` when unknown (never 0), else three significant digits and a unit."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    for unit, size, following in _SHOWN:
        rounded = float(f"{seconds / size:.3g}")  # before the unit is chosen: 999.6 ms is 1 s
        if abs(rounded) * size < following:
            return f"{rounded:.0f} {unit}" if abs(rounded) >= 100 else f"{rounded:.3g} {unit}"
    return f"{seconds / 3600:.0f} h"


def format_range(seconds: float) -> str:
    """A length of time as Prometheus writes it, to the millisecond: `15s`, `1500ms`, `30d`. Reads back by
    `parse_seconds`."""
    milliseconds = round(seconds * 1000)
    unit, size = next((unit, size) for unit, size in _RANGES if milliseconds % size == 0)
    return f"{milliseconds // size}{unit}"


def as_written(value: float) -> Decimal:
    """The decimal number that a file said: 0.999, and so a budget of 0.001, not 0.0010000000000000009."""
    return Decimal(repr(value))


def format_share(share: float | Decimal) -> str:
    """A share as it was written, in percent: `95 %` for 0.95, `99.9 %` for 0.999."""
    exact = share if isinstance(share, Decimal) else as_written(share)
    return f"{(exact * 100).normalize():f} %"


def format_tokens(tokens: int) -> str:
    """`8k` for 8192; 1000 stays `1000`, since k is 1024 here. Reads back by `parse_tokens`."""
    return f"{tokens // 1024}k" if tokens and tokens % 1024 == 0 else str(tokens)


Seconds = Annotated[
    float, BeforeValidator(parse_seconds, json_schema_input_type=float | str), PlainSerializer(float, return_type=float)
]
TokenCount = Annotated[int, BeforeValidator(parse_tokens, json_schema_input_type=int | str)]
Share = Annotated[float, BeforeValidator(parse_share, json_schema_input_type=float | str)]
Number = Annotated[float, BeforeValidator(parse_number, json_schema_input_type=float | str)]
WholeNumber = Annotated[int, BeforeValidator(parse_whole, json_schema_input_type=int | str)]
