"""`cliffwatch surface cliffs`: where a curve jumps, and what the engine showed there."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from cliffwatch.cli.surface_along import AXIS, BINS, BY, JSON, METRIC, RUN
from cliffwatch.errors import ExitCode, InputError
from cliffwatch.surface.along import curves, question_along
from cliffwatch.surface.cause import Limits, Point, causes, why_unknown
from cliffwatch.surface.cliff import Cliff, Found, find_cliffs
from cliffwatch.surface.evidence import evidence
from cliffwatch.surface.scrapes import read_engines
from cliffwatch.surface.series import STATISTICS, series_of
from cliffwatch.surface.source import open_source
from cliffwatch.surface.words import written_value
from cliffwatch.units import parse_tokens

app = typer.Typer(add_completion=False)


@app.command()
def cliffs(
    run: Path = RUN,
    metric: str = METRIC,
    axis: str = AXIS,
    by: str = BY,
    bins: str = BINS,
    statistic: str = typer.Option("p50", help=f"Of the values at each point: {', '.join(STATISTICS)}."),
    fail_below: str = typer.Option("", help="Exit code 1 where a cliff may begin below this axis value (such as 8k)."),
    metrics: Path | None = typer.Option(
        None, metavar="FILE|DIR", help="Scrapes of the engine during the run, each after `# scraped UNIX_SECONDS`."
    ),
    max_batched_tokens: str = typer.Option("", help="Of the engine: the most tokens a step, such as 8192."),
    max_num_seqs: str = typer.Option("", help="Of the engine: the most sequences at a time."),
    graph_sizes: str = typer.Option("", help="Of the engine: batch sizes with a CUDA graph, such as 1,2,4,8."),
    as_json: bool = JSON,
) -> None:
    """Say where latency jumps along an axis by more than its trend and its noise explain, and why.

    At most one series in 200 without a cliff is given one; a jump under 20 % beyond the trend is none. Causes are told
    by the engine's metrics and settings, where they are given. Exit codes: 0 good, 1 a cliff below --fail-below, 2
    wrong input.
    """
    if statistic not in STATISTICS:
        raise InputError("unknown statistic", field="--statistic", value=statistic, allowed=", ".join(STATISTICS))
    limit = _limit(fail_below)
    limits = Limits(
        _count("--max-batched-tokens", max_batched_tokens), _sizes(graph_sizes), _count("--max-num-seqs", max_num_seqs)
    )
    source, engines = open_source(run), () if metrics is None else read_engines(metrics)
    found = {
        label: find_cliffs(series_of(points, statistic))
        for label, points in curves(source, metric, axis, by, bins=bins).items()
    }
    points = evidence(source, question_along(metric, axis, by, bins), engines) if _any(found) else {}
    whys = {
        label: [_why(points[label, cliff.after], points[label, cliff.before], limits) for cliff in one.cliffs]
        for label, one in found.items()
    }
    if as_json:
        about = {"metric": metric, "statistic": statistic, "axis": axis, "by": by}
        told = {label: _document(one, whys[label]) for label, one in found.items()}
        typer.echo(json.dumps(about | {"curves": told}))
    else:
        typer.echo(f"cliffs of {statistic} of {metric} along {axis}")
        for label, one in found.items():
            for line in _said(one, whys[label], metric):
                typer.echo(f"  {by} {label}: {line}")
    if any(cliff.low < limit for one in found.values() for cliff in one.cliffs if limit is not None):
        raise typer.Exit(ExitCode.SLO_MISSED)


def _any(found: Mapping[str, Found]) -> bool:
    return any(one.cliffs for one in found.values())


def _why(after: Point, before: Point, limits: Limits) -> dict[str, Any]:
    found = causes(after, before, limits)
    return {
        "causes": [dataclasses.asdict(cause) for cause in found],
        "cause_unknown": None if found else why_unknown(after, before),
    }


def _document(found: Found, whys: list[dict[str, Any]]) -> dict[str, Any]:
    cliffs_of = [dataclasses.asdict(cliff) | why for cliff, why in zip(found.cliffs, whys, strict=True)]
    return dataclasses.asdict(found) | {"cliffs": cliffs_of}


def _limit(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(parse_tokens(text)) if text[-1].isalpha() else float(text)
    except ValueError as error:
        raise InputError(str(error), field="--fail-below", value=text, allowed="such as 8k or 16") from error


def _count(field: str, text: str) -> int | None:
    if not text:
        return None
    try:
        count = parse_tokens(text)
    except ValueError as error:
        raise InputError(str(error), field=field, value=text, allowed="such as 256 or 8k") from error
    if count < 1:
        raise InputError("must be 1 or more", field=field, value=text)
    return count


def _sizes(text: str) -> tuple[int, ...]:
    given = (_count("--graph-sizes", one.strip()) for one in text.split(",") if one.strip())
    return tuple(sorted({size for size in given if size is not None}))


def _said(found: Found, whys: list[dict[str, Any]], metric: str) -> list[str]:
    if found.too_few is not None:
        return [f"too little data to say ({found.too_few}; n {found.n})"]
    if not found.cliffs:
        return [f"no cliff over {found.points} points (n {found.n})"]
    return [f"{_said_cliff(cliff, metric)}; {_said_why(why)}" for cliff, why in zip(found.cliffs, whys, strict=True)]


def _said_why(why: dict[str, Any]) -> str:
    if why["cause_unknown"] is not None:
        return f"cause not known: {why['cause_unknown']}"
    told = "; ".join(f"{cause['name']} ({cause['evidence']})" for cause in why["causes"])
    return f"cause{'s' if len(why['causes']) > 1 else ''}: {told}"


def _said_cliff(cliff: Cliff, metric: str) -> str:
    place = f"from {cliff.after:g} to {cliff.before:g}"
    if (cliff.low, cliff.high) != (cliff.after, cliff.before):
        place += f" (95 %: between {cliff.low:g} and {cliff.high:g})"
    levels = written_value(cliff.from_s, metric), written_value(cliff.to_s, metric)
    return (
        f"+{cliff.jump:.0%} {place}: {levels[0]} (n {cliff.n_after}) to {levels[1]} (n {cliff.n_before});"
        f" +{cliff.beyond:.0%} beyond the trend (95 %: {cliff.beyond_low:+.0%} to {cliff.beyond_high:+.0%}),"
        f" p {cliff.p:.1g}, by {' and '.join(cliff.methods)}"
    )
