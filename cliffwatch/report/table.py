"""The report as tables for a terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cliffwatch.cost.price import Price
from cliffwatch.records.manifest import Verdict, VerdictState
from cliffwatch.report.groups import GroupSummary
from cliffwatch.report.intervals import SureQuantile
from cliffwatch.report.replicas import ReplicasSummary
from cliffwatch.report.summary import FigureSummary, PhaseSummary, Report
from cliffwatch.report.words import (
    FEW,
    FEW_NOTE,
    INTERVAL_NOTE,
    SETTLING_NOTE,
    STATUS,
    UNKNOWN,
    attained,
    bias,
    cancellations,
    checked,
    interval,
    limit,
    number,
    price_figures,
    printable,
    quantile,
    replicas,
    retries,
    seconds_interval,
    settling,
    share,
    target,
    trusted,
    usd,
)
from cliffwatch.slo.beside.table import render as render_beside
from cliffwatch.slo.judgement import Judgement, ObjectiveResult, Status
from cliffwatch.units import format_seconds

_GROUP_PERCENTILES = ("p50", "p95")
STATUS_STYLE = {Status.MET: "green", Status.MISSED: "bold red", Status.TOO_FEW_DATA: "yellow"}
STATUS_SIGN = {Status.MET: "✓", Status.MISSED: "✕", Status.TOO_FEW_DATA: "?"}
VERDICT_STYLE = {VerdictState.VALID: "green", VerdictState.DEGRADED: "yellow", VerdictState.INVALID: "bold red"}


def render(report: Report) -> RenderableType:
    """The whole report: what ran and whether to trust it, objectives, latencies, outcomes, cost."""
    return Group(*_parts(report))


def _parts(report: Report) -> Iterator[RenderableType]:
    yield _heading(report)
    yield from _trust(report)
    if report.judgement:
        yield _conclusion(report.judgement)
        yield _spaced(_objectives(report.judgement.objectives))
    else:
        yield Text("No SLO file was given: nothing to meet or miss.", style="dim")
    yield _spaced(Text(f"Latency of the successful requests ({report.phase})", style="bold"))
    yield _latencies(report.figures)
    if report.by is not None:
        yield _spaced(_groups(report.by, report.groups))
    yield _spaced(_settling(report))
    yield _spaced(_outcomes(report))
    yield from _clients(report)
    if report.replicas is not None:
        yield from _replicas(report.replicas)
    if report.beside is not None:
        yield render_beside(report.beside)
    yield _spaced(_rates(report))
    if report.verdict and report.verdict.checks:
        yield _spaced(_checks(report.verdict))
    for apart in report.apart:
        yield _apart(apart)
    for note in (FEW_NOTE, INTERVAL_NOTE, f"over time: {SETTLING_NOTE}"):
        yield Text(note, style="dim")


def _spaced(part: RenderableType) -> RenderableType:
    return Padding(part, (1, 0, 0, 0))


def _grid(*columns: str) -> Table:
    """A table without frames; a column whose name starts with `>` is set right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        right = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if right else "left", no_wrap=right)
    return table


def _heading(report: Report) -> Text:
    manifest = report.manifest
    text = Text.assemble((manifest.name, "bold"), printable(f"  {manifest.model} at {manifest.target}"))
    text.append(f"\n{report.n:,} requests judged ({report.phase})")
    text.append(f", run {manifest.run_id}, seed {manifest.seed}", style="dim")
    return text


def _trust(report: Report) -> Iterator[Text]:
    if report.partial:
        yield Text(report.partial, style="yellow")
    if report.verdict is None:
        yield Text("verdict: none yet", style="dim")
        return
    yield Text.assemble("verdict: ", (report.verdict.state, VERDICT_STYLE[report.verdict.state]))
    for reason in report.verdict.reasons:
        yield Text(f"  {reason.message}", style=VERDICT_STYLE[reason.state])


def _checks(verdict: Verdict) -> Table:
    table = _grid("how far to trust this", ">value", ">DEGRADED from", ">INVALID from", ">n", "state")
    for one in verdict.checks:
        table.add_row(
            one.check,
            checked(one.value, one.unit),
            limit(one.degraded, one),
            limit(one.invalid, one),
            UNKNOWN if one.n is None else f"{one.n:,}",
            Text(trusted(one), style="dim" if one.state is None else VERDICT_STYLE[one.state]),
        )
    return table


def _conclusion(judgement: Judgement) -> Text:
    word = STATUS[judgement.status]
    return Text.assemble(
        f"SLO {judgement.slo}: ", (f"{STATUS_SIGN[judgement.status]} {word}", STATUS_STYLE[judgement.status]),
        f" ({judgement.reason})",
    )  # fmt: skip


def _objectives(objectives: Iterable[ObjectiveResult]) -> Table:
    table = _grid("", "objective", ">target", ">attained", ">n")
    for one in objectives:
        observed = "  ".join(f"{name.upper()} {quantile(value)}" for name, value in one.observed.items())
        table.add_row(
            Text(f"{STATUS_SIGN[one.status]} {STATUS[one.status]}", style=STATUS_STYLE[one.status]),
            Text.assemble(one.label, (f"\n{observed}" if observed else "", "dim")),
            target(one.target),
            Text.assemble(attained(one.attainment), (f"\n{interval(one.low, one.high)}", "dim")),
            f"{one.n:,}",
        )
    return table


def _latencies(figures: Iterable[FigureSummary]) -> Table:
    table = _grid("", ">n", ">mean", ">P50", ">P95", ">P99", ">max")
    for one in figures:
        table.add_row(
            Text.assemble(one.label, (f"\n{bias(one.bias)}" if one.bias else "", "dim")),
            f"{one.n:,}",
            format_seconds(one.mean),
            *(_percentile(one.percentiles[name]) for name in ("p50", "p95", "p99")),
            format_seconds(one.max),
        )
    return table


def _percentile(one: SureQuantile) -> Text:
    return Text.assemble(
        quantile(one), (f"\n{seconds_interval(one.low, one.high)}" if one.value is not None else "", "dim")
    )


def _groups(by: str, groups: Sequence[GroupSummary]) -> Table:
    labels = list(groups[0].latencies) if groups else []
    table = _grid(by, ">n", ">ok", *(f">{label} {name.upper()}" for label in labels for name in _GROUP_PERCENTILES))
    for one in groups:
        cells = [quantile(one.latencies[label][name]) for label in labels for name in _GROUP_PERCENTILES]
        name = UNKNOWN if one.value is None else printable(one.value)
        table.add_row(Text(name), f"{one.n:,}", share(one.ok / one.n), *cells)
    return table


def _settling(report: Report) -> Table:
    table = _grid("over time", "")
    for one in report.settling:
        calm = one.warmup_cut is None or (one.covered and one.steady is not False)
        table.add_row(one.label, Text(settling(one), style="" if calm else "yellow"))
    return table


def _outcomes(report: Report) -> Table:
    table = _grid("outcome", ">n", ">share", "most frequent message")
    for one in report.outcomes:
        message = next((error.message for error in report.errors if error.outcome is one.outcome), "")
        table.add_row(
            one.outcome, f"{one.n:,}", share(one.share), Text(printable(message), overflow="ellipsis", no_wrap=True)
        )
    if not report.outcomes:
        table.add_row("none yet", "0", UNKNOWN, "")
    return table


def _clients(report: Report) -> Iterator[RenderableType]:
    """Retries and users who left, where the workload had any."""
    if report.retries:
        yield Text(f"retries: {retries(report.retries)}")
    if report.retried and report.retried.n:
        yield _latencies([report.retried])
    if report.cancellations:
        yield Text(f"cancellations: {cancellations(report.cancellations)}")


def _replicas(one: ReplicasSummary) -> Iterator[RenderableType]:
    yield _spaced(Text(printable(f"replicas: {replicas(one)}")))
    table = _grid("replica", ">answers", ">share", ">ok", ">TTFT P95 from sent")
    for each in one.replicas:
        table.add_row(
            Text(printable(each.name)), f"{each.n:,}", share(each.share), f"{each.ok:,}", _percentile(each.ttft_p95)
        )
    if one.replicas:
        yield table


def _rates(report: Report) -> Table:
    table = _grid("", "")
    table.show_header = False
    rates, estimated = report.throughput, " (estimated)" if report.work.estimated else ""
    table.add_row("held", f"{format_seconds(report.work.held_s)}, from the first request due to the last one's end")
    if report.judgement:
        good = report.judgement.goodput
        table.add_row(
            "goodput", f"{number(good.per_s)} requests/s; {attained(good.ratio)} of {good.n:,} meet every objective"
        )
    table.add_row(
        "throughput",
        f"{number(rates.requests_per_s)} requests/s, {number(rates.input_tokens_per_s)} input and "
        f"{number(rates.output_tokens_per_s)} output tokens/s{estimated}",
    )
    for name, text in _cost(report.price):
        table.add_row(name, text)
    return table


def _cost(price: Price | None) -> Iterator[tuple[str, str]]:
    if price is None:
        yield "cost", "unknown: no gpu_hour_usd in the SLO file or the workload file"
        return
    yield "cost", f"{usd(price.usd)}, {price.gpus:g} GPU at {number(price.gpu_hour_usd)} USD an hour"
    for what, value, key in price_figures(price):
        yield "", usd(value) + (f" ({price.undefined[key]})" if value is None else "") + f" {what}"


def _apart(apart: PhaseSummary) -> Text:
    p50 = apart.ttft.percentiles["p50"]
    middle = f"P50 {quantile(p50)}" if p50.value is not None else f"mean {format_seconds(apart.ttft.mean)} {FEW}"
    return Text(
        f"apart: {apart.phase}, {apart.n:,} requests, {apart.ok:,} ok, "
        f"TTFT {middle}, max {format_seconds(apart.ttft.max)} (n {apart.ttft.n:,})",
        style="dim",
    )
