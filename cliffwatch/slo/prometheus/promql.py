"""Pieces of PromQL. Values are quoted, names come from the catalog or from checked labels: nothing can break out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from cliffwatch.units import format_range, parse_seconds

TAG = "cliffwatch_what"


def quoted(text: str) -> str:
    """A PromQL string."""
    return json.dumps(text, ensure_ascii=False)


def exact(value: str) -> str:
    """A regular expression for one value; RE2 and PromQL both take the escapes."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", value)


def any_of(values: Iterable[str]) -> str:
    """A regular expression for any of these values."""
    return "|".join(exact(value) for value in sorted(values))


def le_pattern(edge: float) -> str:
    """Every spelling of a bucket edge as a regular expression: `2` and `2.0`, `1e+06` and `1000000`.

    Servers in Go write 2, those in Python 2.0 and 1e+06; Prometheus 2 keeps what it reads, Prometheus 3 writes 2.0.
    """
    exactly = Decimal(repr(float(edge))).normalize()
    plain = f"{exactly:f}"
    spellings = [exact(plain) + (r"(\.0+)?" if plain.isdigit() else "")]
    if len(plain) > 17:  # 0.0001 x 1.5 is 0.00015000000000000001; others round it
        spellings.append(exact(f"{edge:.15g}"))
    if not 1e-4 <= edge < 1e6:
        first, *others = map(str, exactly.as_tuple().digits)
        spellings.append(exact(f"{first}{'.' if others else ''}{''.join(others)}e{exactly.adjusted():+03d}"))
    return "|".join(dict.fromkeys(spellings))


def selector(
    metric: str,
    labels: Mapping[str, str],
    patterns: Mapping[str, str] | None = None,
    without: Mapping[str, str] | None = None,
) -> str:
    """`metric{label="value",other=~"pattern",another!~"pattern"}`."""
    kinds = (("=", labels), ("=~", patterns or {}), ("!~", without or {}))
    parts = [f"{label}{operator}{quoted(value)}" for operator, given in kinds for label, value in given.items()]
    return metric + ("{" + ",".join(parts) + "}" if parts else "")


def tagged(expression: str, value: str) -> str:
    """The expression's series with the label `TAG`: one query may hold several that are alike in all other labels."""
    return f'label_replace({expression}, "{TAG}", "{value}", "", "")'


def summed(group_by: Sequence[str], inner: str) -> str:
    """A sum over all series of a group."""
    return f"sum by ({', '.join(group_by)}) ({inner})" if group_by else f"sum({inner})"


def window_text(seconds: int) -> str:
    """`5m`, `6h`, `3d`."""
    return format_range(seconds)


def window_s(text: str) -> int:
    """The seconds of such a text."""
    return round(parse_seconds(text))
