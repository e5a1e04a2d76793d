"""A comparison as Markdown: for a pull request's comment or a job's summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cliffwatch.compare.result import Comparison, RunSide
from cliffwatch.compare.words import cells, conclusion, rules
from cliffwatch.report.words import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&@])")


def render(comparison: Comparison) -> str:
    """A heading, what ran, what is to be said about it, one table; ends with a line end."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    yield f"## Comparison: {conclusion(comparison)}"
    yield ""
    yield f"- base: {_run(comparison.base)}"
    yield f"- new: {_run(comparison.new)}"
    yield from (f"- ⚠ {escape(remark)}" for remark in comparison.remarks)
    yield ""
    yield "| figure | base | new | change | p | result |"
    yield "|---|---:|---:|---:|---:|---|"
    for one in comparison.figures:
        text = cells(one)
        columns = (
            escape(text.label),
            _two(text.base, _with_n(text.base_interval, text.base_n)),
            _two(text.new, _with_n(text.new_interval, text.new_n)),
            _two(text.difference, text.difference_interval),
            escape(text.p_value),
            _two(text.result, text.note),
        )
        yield f"| {' | '.join(columns)} |"
    yield ""
    yield escape(rules(comparison))


def _run(run: RunSide) -> str:
    return escape(f"{run.name} ({run.run_id}), {run.model} at {run.target}")


def _with_n(interval: str, n: str) -> str:
    return f"{interval}, n {n}" if interval else f"n {n}"


def _two(value: str, interval: str) -> str:
    return escape(value) + (f"<br><sub>{escape(interval)}</sub>" if interval else "")


def escape(text: str) -> str:
    """Text of a run that can neither end a cell nor become markup."""
    return _SPECIAL.sub(r"\\\1", printable(text))
