"""Prometheus's text format, a piece at a time.

prometheus_client builds the whole text in one go, 60 ms of it for a worker's hundred sets of labels: requests would be
sent late for being watched. Here a family's samples come in small pieces, and the server lets others run in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cliffwatch.stats.histogram import Buckets

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Family(NamedTuple):
    """A metric; a counter's name ends in `_total`."""

    name: str
    kind: str
    help: str

    def head(self) -> str:
        return f"# HELP {self.name} {self.help.translate(_HELP_ESCAPES)}\n# TYPE {self.name} {self.kind}\n"


_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
Labels = Mapping[str, str]


def label_text(labels: Labels) -> str:
    """`name="value",...`; a label without a value is left out, which means the same."""
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items() if value)


def samples(family: Family, values: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """A counter's or gauge's text; nothing, not even its name, where there are no values."""
    head = family.head()
    for labels, value in values:
        yield f"{head}{family.name}{{{label_text(labels)}}} {value}\n"
        head = ""


def histograms(family: Family, edges: tuple[float, ...], values: Iterable[tuple[Labels, Buckets]]) -> Iterator[str]:
    """A histogram's text, each set of labels in one piece; one without values is left out."""
    head, name = family.head(), family.name
    les = [f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge) for edge in edges]
    for labels, (total, buckets) in values:
        if not buckets:
            continue
        text, counts = label_text(labels), dict(buckets)
        running, lines = 0, [head]
        for bucket, le in enumerate(les):
            running += counts.get(bucket, 0)
            lines.append(f'{name}_bucket{{{text},le="{le}"}} {running}\n')
        running += counts.get(len(les), 0)
        lines.append(f'{name}_bucket{{{text},le="+Inf"}} {running}\n')
        lines.append(f"{name}_count{{{text}}} {running}\n{name}_sum{{{text}}} {total!r}\n")
        yield "".join(lines)
        head = ""


def summary(family: Family, values: Iterable[tuple[Labels, Mapping[float, float], int]]) -> Iterator[str]:
    """Quantiles and how many values they are of; without a sum, which nobody knows."""
    head, name = family.head(), family.name
    for labels, quantiles, n in values:
        text = label_text(labels)
        lines = [f'{name}{{{text},quantile="{quantile:g}"}} {value!r}\n' for quantile, value in quantiles.items()]
        yield "".join([head, *lines, f"{name}_count{{{text}}} {n}\n"])
        head = ""
