"""`cliffwatch surface cliffs` and `knee`: where a curve jumps, and where it begins to grow in another way."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import typer

from cliffwatch.errors import ExitCode, InputError
from cliffwatch.records.figures import FIGURES
from cliffwatch.surface.along import curves
from cliffwatch.surface.bins import AUTO, FORMS
from cliffwatch.surface.cliff import Cliff, Found, find_cliffs
from cliffwatch.surface.grid import Points
from cliffwatch.surface.knee import Knee, find_knee
from cliffwatch.surface.series import STATISTICS, series_of
from cliffwatch.surface.source import open_source
from cliffwatch.units import format_seconds, parse_tokens

cliffs_app = typer.Typer(add_completion=False)
knee_app = typer.Typer(add_completion=False)

_RUN = typer.Argument(..., metavar="RUN", help="The folder of a run, or a file of measurements.")
_METRIC = typer.Option("ttft_s", help="A figure of a request, such as ttft_s, itl_s, e2e_s.")
_AXIS = typer.Option("input_tokens", help="The dimension to look along: input_tokens, batch, concurrency, rate, ...")
_BY = typer.Option("batch", help="One curve for each value of this dimension.")
_BINS = typer.Option(AUTO, help=f"Of the axis: {FORMS}.")
_JSON = typer.Option(False, "--json", help="Print JSON for machines.")


@cliffs_app.command()
def cliffs(
    run: Path = _RUN,
    metric: str = _METRIC,
    axis: str = _AXIS,
    by: str = _BY,
    bins: str = _BINS,
    statistic: str = typer.Option("p50", help=f"Of the values at each point: {', '.join(STATISTICS)}."),
    fail_below: str = typer.Option("", help="Exit code 1 where a cliff may begin below this axis value (such as 8k)."),
    as_json: bool = _JSON,
) -> None:
    """Say where latency jumps along an axis by more than its trend and its noise explain.

    At most one series in 200 without a cliff is given one; a jump under 20 % beyond the trend is none. Exit codes: 0
    good, 1 a cliff below --fail-below, 2 wrong input.
    """
    if statistic not in STATISTICS:
        raise InputError("unknown statistic", field="--statistic", value=statistic, allowed=", ".join(STATISTICS))
    limit = _limit(fail_below)
    found = {
        label: find_cliffs(series_of(points, statistic))
        for label, points in _curves(run, metric, axis, by, bins).items()
    }
    if as_json:
        about = {"metric": metric, "statistic": statistic, "axis": axis, "by": by}
        typer.echo(json.dumps(about | {"curves": {label: dataclasses.asdict(one) for label, one in found.items()}}))
    else:
        typer.echo(f"cliffs of {statistic} of {metric} along {axis}")
        for label, one in found.items():
            for line in _said(one, metric):
                typer.echo(f"  {by} {label}: {line}")
    low = [cliff for one in found.values() for cliff in one.cliffs if limit is not None and cliff.low < limit]
    if low:
        raise typer.Exit(ExitCode.SLO_MISSED)


@knee_app.command()
def knee(
    run: Path = _RUN, metric: str = _METRIC, axis: str = _AXIS, by: str = _BY, bins: str = _BINS, as_json: bool = _JSON
) -> None:
    """Say where latency or throughput begins to grow in another way along an axis: none, one or two places.

    Pieces of straight lines that meet; places have 95 % intervals. Exit codes: 0 good, 2 wrong input.
    """
    found = {label: find_knee(points) for label, points in _curves(run, metric, axis, by, bins).items()}
    if as_json:
        curves_of = {label: dataclasses.asdict(one) | {"phases": one.phases} for label, one in found.items()}
        typer.echo(json.dumps({"metric": metric, "axis": axis, "by": by, "curves": curves_of}))
        return
    typer.echo(f"knees of {metric} along {axis}")
    for label, one in found.items():
        typer.echo(f"  {by} {label}: {_said_knee(one, metric)}")


def _curves(run: Path, metric: str, axis: str, by: str, bins: str) -> Mapping[str, Points]:
    return curves(open_source(run), metric, axis, by, bins=bins)


def _limit(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(parse_tokens(text)) if text[-1].isalpha() else float(text)
    except ValueError as error:
        raise InputError(str(error), field="--fail-below", value=text, allowed="such as 8k or 16") from error


def _said(found: Found, metric: str) -> list[str]:
    if found.too_few is not None:
        return [f"too little data to say ({found.too_few}; n {found.n})"]
    return [_said_cliff(cliff, metric) for cliff in found.cliffs] or [
        f"no cliff over {found.points} points (n {found.n})"
    ]


def _said_cliff(cliff: Cliff, metric: str) -> str:
    place = f"from {cliff.after:g} to {cliff.before:g}"
    if (cliff.low, cliff.high) != (cliff.after, cliff.before):
        place += f" (95 %: between {cliff.low:g} and {cliff.high:g})"
    return (
        f"+{cliff.jump:.0%} {place}: {_value(cliff.from_s, metric)} (n {cliff.n_after}) to {_value(cliff.to_s, metric)}"
        f" (n {cliff.n_before}); +{cliff.beyond:.0%} beyond the trend (95 %: {cliff.beyond_low:+.0%} to"
        f" {cliff.beyond_high:+.0%}), p {cliff.p:.1g}, by {' and '.join(cliff.methods)}"
    )


def _said_knee(found: Knee, metric: str) -> str:
    if found.too_few is not None:
        return f"too little data to say ({found.too_few}; n {found.n})"
    if not found.breaks:
        return f"no knee over {found.points} points (n {found.n}): {found.phases[0]} all along"
    places = " and ".join(written_place(each.at, each.low, each.high) for each in found.breaks)
    levels = ", ".join(_value(level, metric) for level in found.levels)
    return f"at {places}: {', then '.join(found.phases)}; {levels} at the ends and knees (n {found.n})"


def written_place(at: float, low: float, high: float) -> str:
    """A place on an axis with its interval."""
    at_text, low_text, high_text = (f"{value:,.0f}" if value >= 100 else f"{value:.4g}" for value in (at, low, high))
    return f"{at_text} (95 %: {low_text} to {high_text})"


def _value(value: float, metric: str) -> str:
    unit = FIGURES[metric].unit
    return format_seconds(value) if unit == "s" else f"{value:.4g} {unit}"
