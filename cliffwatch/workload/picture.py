"""A workload's preview for a terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cliffwatch.units import format_seconds, format_tokens
from cliffwatch.workload.fitting import Fit
from cliffwatch.workload.preview import Preview
from cliffwatch.workload.preview.chance import Expected
from cliffwatch.workload.preview.clients import CancellationsPlan, RetriesPlan
from cliffwatch.workload.preview.requests import GridRow, Lengths, SessionsPlan
from cliffwatch.workload.traces.rows import Repair

UNKNOWN = "–"
LEVELS = " ▁▂▃▄▅▆▇█"
BAR = 16
MIX_SHOWN = 8
NAME_WIDTH = 28


def render(preview: Preview) -> RenderableType:
    """What will be sent, as tables and two plots; every statistic with its n."""
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in _parts(preview)))


def _parts(preview: Preview) -> Iterator[RenderableType]:
    heading = Text(preview.name, style="bold")
    if preview.description:
        heading.append(f"\n{preview.description}", style="not bold")
    heading.append(f"\nseed {preview.seed}, schedule {preview.schedule_hash[:12]}; nothing was sent", style="dim")
    yield heading
    if not preview.complete:
        yield Text(f"Only the first {preview.n:,} requests are previewed; all figures are over these.", style="yellow")
    for line in repair_lines(preview.repairs):
        yield Text(line, style="yellow")
    yield _rows(_load(preview))
    if preview.arrivals_over_time:
        yield _over_time(preview.arrivals_over_time, preview.duration_s)
    yield _lengths(preview)
    yield _grid(preview)
    for name in preview.mixes:
        yield _mix(preview, name)
    if len(preview.shards) > 1:
        yield _shards(preview)


def repair_lines(repairs: Iterable[Repair]) -> Iterator[str]:
    """What was set right in a trace, in words, each with its count and first line."""
    for repair in repairs:
        first = "" if repair.first_line is None else f", the first in line {repair.first_line:,}"
        yield f"Trace: {repair.what}{f' ({repair.count:,}{first})' if first or repair.count > 1 else ''}."


def render_fit(found: Fit) -> RenderableType:
    """How near a fitted workload is to its trace."""
    fidelity = found.fidelity
    table = _table("figure", "trace", "fitted", "KS distance")
    for name, distance in (
        ("input tokens", fidelity.input_tokens),
        ("output tokens", fidelity.output_tokens),
        ("gaps", fidelity.gaps),
    ):
        table.add_row(name, "", "", _number(distance))
    windows = f"dispersion ({fidelity.windows:,} windows)"
    for name, figures in (
        ("requests/s", fidelity.rate),
        ("burstiness (CV of gaps)", fidelity.cv),
        (windows, fidelity.dispersion),
        ("input tokens shared", fidelity.shared_input),
        ("rank correlation of lengths", fidelity.length_correlation),
    ):
        table.add_row(name, _number(figures.trace), _number(figures.fitted), "")
    score = f"fidelity {fidelity.score:.3f} (n = {fidelity.n:,}; a distance of {fidelity.noise:.3f} may be chance)"
    lines = [
        Text(line, style="yellow") for line in (*repair_lines(found.repairs), *(f"{note}." for note in found.notes))
    ]
    return Group(Text(score, style="bold"), *lines, table)


def _load(preview: Preview) -> Iterator[tuple[str, str]]:
    expected = preview.expected_requests
    yield (
        "requests",
        f"{preview.n:,}" if preview.complete else f"about {expected:,.0f}" if expected else "as many as fit",
    )
    yield "duration", format_seconds(preview.duration_s) if preview.duration_s else "until the last request has ended"
    if preview.users is not None:
        yield "arrivals", f"closed loop, {preview.users:,} users: the server's pace decides"
    else:
        asked = "" if preview.rate_asked is None else f" {_rate(preview.rate_asked)} asked,"
        what = "" if preview.sessions is None else " of sessions"
        yield "arrivals", f"{preview.arrivals}{what},{asked} {_rate(preview.rate_achieved)} planned"
    if preview.sessions is not None:
        yield "sessions", _sessions_line(preview.sessions)
    if preview.gaps:
        gaps = preview.gaps
        yield "gaps", f"CV {_number(gaps.cv)} (n = {gaps.n:,})"
        yield "dispersion", f"{_number(gaps.dispersion)} (n = {gaps.bins:,} windows of {format_seconds(gaps.bin_s)})"
    if preview.by_phase is None:
        yield "phases", "warm-up by time, decided while running"
    else:
        yield "phases", ", ".join(f"{name} {count:,}" for name, count in preview.by_phase.items())
    yield "endpoints", ", ".join(f"{name} {count:,}" for name, count in sorted(preview.by_endpoint.items()))
    share = f"{preview.prefix_share:.1%} of requests (n = {preview.n:,})"
    yield "shared prefix", f"{share}, {preview.shared_input_tokens:,} tokens" if preview.prefix_requests else "none"
    if preview.retries is not None:
        yield "retries", _retries_line(preview.retries, preview.n)
    if preview.cancellations is not None:
        yield "users leaving", _cancellations_line(preview.cancellations)
    yield "tokens", f"{preview.total_input_tokens:,} in, up to {preview.total_output_tokens:,} out"
    yield "prompts", f"{preview.prompts:,}"


def _retries_line(retries: RetriesPlan, n: int) -> str:
    waits = f"{format_seconds(retries.min_wait_s)} to {format_seconds(retries.max_wait_s)} of waits a request"
    return (
        f"{', '.join(retries.on)}: up to {retries.attempts:,} attempts, {n:,} to {retries.max_attempts:,} in all; "
        f"{waits}, within {format_seconds(retries.budget_s)}"
    )


def _cancellations_line(plan: CancellationsPlan) -> str:
    line = f"{_expected(plan.expect)}; {plan.leaving:,} of the first {plan.n:,}"
    since = plan.since.replace("_", " ")
    return f"{line}, P50 {format_seconds(plan.p50_s)} and P95 {format_seconds(plan.p95_s)} after the {since}"


def _expected(one: Expected) -> str:
    bounds = "" if one.low is None else f" ({one.low:,} to {one.high:,})"
    return f"about {one.mean:,.0f}{bounds}"


def _sessions_line(sessions: SessionsPlan) -> str:
    turns, added = sessions.turns, sessions.added_tokens
    line = f"{sessions.n:,} of {turns.min:,} to {turns.max:,} turns, mean {turns.mean:.3g}"
    if added is None:
        return line
    pause = format_seconds(sessions.mean_pause_s)
    return f"{line}; a later one adds {added.min:,} to {added.max:,} tokens, {pause} after the answer on average"


def _rows(rows: Iterator[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, text in rows:
        table.add_row(Text(name, style="dim"), text)
    return table


def _over_time(counts: tuple[int, ...], duration_s: float | None) -> Text:
    top = max(counts)
    line = "".join(LEVELS[-(-count * (len(LEVELS) - 1) // top)] for count in counts)
    return Text(f"arrivals over {format_seconds(duration_s)}, {top:,} at most in each of {len(counts)} parts\n{line}")


def _lengths(preview: Preview) -> Table:
    table = _table("tokens a prompt", "n", "min", "p50", "p95", "max", "mean")
    for name, lengths in (("input", preview.input_tokens), ("output", preview.output_tokens)):
        table.add_row(name, *_length_cells(lengths))
    return table


def _length_cells(lengths: Lengths) -> list[str]:
    figures = (lengths.n, lengths.min, lengths.p50, lengths.p95, lengths.max, lengths.mean)
    return [f"{figure:,.0f}" for figure in figures]


def _grid(preview: Preview) -> Table:
    """Requests by input length and batch size, with a bar for each length."""
    table = _table("input tokens", *(f"batch {size}" for size in preview.by_batch), "requests")
    table.add_column("", max_width=BAR)  # gives way first where the terminal is narrow
    top = max(sum(row.by_batch.values()) for row in preview.grid)
    for row in preview.grid:
        table.add_row(*_grid_cells(row, list(preview.by_batch), top))
    shares = [f"{count / preview.n:.1%}" for count in preview.by_batch.values()]
    table.add_row(Text("all", style="dim"), *shares, f"n = {preview.n:,}")
    return table


def _grid_cells(row: GridRow, sizes: list[int], top: int) -> list[RenderableType]:
    total = sum(row.by_batch.values())
    counts = [f"{row.by_batch[size]:,}" if size in row.by_batch else UNKNOWN for size in sizes]
    return [f"{format_tokens(row.low)} to {format_tokens(row.high)}", *counts, f"{total:,}", Bar(top, 0, total)]


def _mix(preview: Preview, name: str) -> Table:
    """Requests of a mix's largest entries, beside what their weights let expect in 95 of 100 seeds."""
    table = _table(name, "requests", "share", "expected", "95 % of seeds")
    table.columns[0].max_width = NAME_WIDTH  # a long name gives way, the numbers do not
    parts = sorted(preview.mixes[name], key=lambda part: -part.n)
    for part in parts[:MIX_SHOWN]:
        bounds = UNKNOWN if part.expected.low is None else f"{part.expected.low:,} to {part.expected.high:,}"
        cells = (f"{part.n:,}", f"{part.n / preview.n:.1%}", f"{part.expected.mean:,.1f}", bounds)
        table.add_row(Text(part.key, overflow="ellipsis"), *cells)
    if len(parts) > MIX_SHOWN:
        rest = sum(part.n for part in parts[MIX_SHOWN:])
        table.add_row(
            Text(f"{len(parts) - MIX_SHOWN:,} more", style="dim"), f"{rest:,}", f"{rest / preview.n:.1%}", "", ""
        )
    return table


def _shards(preview: Preview) -> Table:
    table = _table("worker", "requests", "input tokens", "users")
    for part in preview.shards:
        users = UNKNOWN if part.users is None else f"{part.users:,}"
        table.add_row(str(part.shard), f"{part.requests:,}", f"{part.input_tokens:,}", users)
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1))
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _rate(rate: float | None) -> str:
    if rate is None:
        return UNKNOWN
    return f"{rate:,.0f}/s" if rate >= 1000 else f"{rate:.4g}/s"


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"
