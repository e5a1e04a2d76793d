"""A comparison as a table for a terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cliffwatch.compare.result import Change, Comparison, RunSide
from cliffwatch.compare.words import CHANGE, SIGN, cells, conclusion, rules
from cliffwatch.report.words import printable

STYLE = {
    Change.REGRESSED: "bold red",
    Change.IMPROVED: "green",
    Change.NO_CHANGE_SHOWN: "",
    Change.TOO_FEW_DATA: "yellow",
}


def render(comparison: Comparison) -> RenderableType:
    """The whole comparison."""
    return Group(*_parts(comparison))


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    yield _run("base", comparison.base)
    yield _run("new", comparison.new)
    for remark in comparison.remarks:
        yield Text(printable(remark), style="yellow")
    yield _figures(comparison)
    yield Text(conclusion(comparison), style="bold red" if comparison.invalid else "bold")
    yield Text(rules(comparison), style="dim")


def _run(which: str, run: RunSide) -> Text:
    return Text.assemble((f"{which:5}", "bold"), printable(f"{run.dir}: {run.name}, {run.model} at {run.target}"))


def _figures(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "base", "new", "change", "p"):
        table.add_column(name, justify="right" if name else "left", no_wrap=not name)
    table.add_column("result")
    for one in comparison.figures:
        text = cells(one)
        table.add_row(
            # The sign goes first: it must be seen on the narrowest terminal.
            Text.assemble(
                (f"{SIGN[one.change]} {text.label}", STYLE[one.change]), (f"\n  n {text.base_n}, {text.new_n}", "dim")
            ),
            _two(text.base, text.base_interval),
            _two(text.new, text.new_interval),
            _two(text.difference, text.difference_interval),
            text.p_value,
            Text.assemble((CHANGE[one.change], STYLE[one.change]), (f"\n{text.note}" if text.note else "", "dim")),
        )
    return table


def _two(value: str, interval: str) -> Text:
    return Text.assemble(value, (f"\n{interval}" if interval else "", "dim"))
