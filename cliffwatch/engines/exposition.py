"""What a server exposes at this moment: the text of `/metrics`, read into names, types, labels and bucket edges."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from cliffwatch.errors import InputError, shorten

MAX_BYTES = 64 << 20
_SAMPLE_NAME = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)[{ ]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Exposed:
    """One metric of one server.

    Attributes:
        labels: label to the values seen, `le` and `quantile` left out.
        layouts: distinct sets of bucket edges (numbers, without +Inf) over its series; empty unless a histogram. More
            than one means that instances with different buckets are mixed.
    """

    name: str
    type: str
    labels: dict[str, frozenset[str]]
    layouts: tuple[tuple[float, ...], ...] = ()


def plain(name: str) -> str:
    """A metric's name as scrapers without colons spell it: equal for both spellings."""
    return name.replace(":", "_")


def read_exposition(text: str, *, source: str = "metrics") -> dict[str, Exposed]:
    """Every metric by its plain name (see `plain`); `_created` series are left out.

    Raises:
        InputError: the text is no exposition: JSON, HTML, empty, too large, or broken; names `source`.
    """
    start = text[:200].lstrip()
    if len(text) > MAX_BYTES:
        raise InputError("is too large", file=source, value=f"{len(text)} characters", allowed=f"up to {MAX_BYTES}")
    for sign, what in (("<", "an HTML page"), ("[", "JSON"), ("{", "JSON")):
        if start.startswith(sign):
            raise InputError(f"is {what}, not Prometheus text", file=source, allowed="the path of Prometheus metrics")
    if not start:
        raise InputError("is empty", file=source, allowed="Prometheus text")
    read: Callable[[str], Iterable[Any]] = read_openmetrics if text.rstrip().endswith("# EOF") else read_text
    try:
        names = set(_SAMPLE_NAME.findall(text))  # the parser gives every counter the end _total
        families = [_exposed(family, names) for family in read(text)]
    except (ValueError, KeyError, IndexError) as error:
        raise InputError(f"is no Prometheus text: {shorten(str(error))}", file=source) from error
    return {plain(one.name): one for one in families if one is not None}


def _exposed(family: Any, names: set[str]) -> Exposed | None:
    if not family.samples or (family.type == "gauge" and family.name.endswith("_created")):
        return None
    values: dict[str, set[str]] = {}
    edges: dict[frozenset[tuple[str, str]], list[float]] = {}
    for sample in family.samples:
        labels = {key: value for key, value in sample.labels.items() if key not in {"le", "quantile"}}
        for key, value in labels.items():
            values.setdefault(key, set()).add(value)
        if sample.name.endswith("_bucket") and "le" in sample.labels:
            edges.setdefault(frozenset(labels.items()), []).append(float(sample.labels["le"]))
    layouts = {tuple(sorted(edge for edge in row if math.isfinite(edge))) for row in edges.values()}
    total = f"{family.name}_total"
    return Exposed(
        name=total if family.type == "counter" and total in names else family.name,
        type=family.type,
        labels={key: frozenset(seen) for key, seen in values.items()},
        layouts=tuple(sorted(layouts)),
    )
