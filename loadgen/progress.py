"""The live view of a run, on standard error: a panel on a terminal, else a line every few seconds."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cliffwatch.records.schema import FAILURES, Outcome
from cliffwatch.units import format_seconds
from loadgen.accounting import Totals
from loadgen.coordinator import Coordinator

_PANEL_S = 0.5
_LINE_S = 5.0


@dataclass(frozen=True, slots=True)
class View:
    """What is shown, in words: label and value."""

    rows: tuple[tuple[str, str], ...]

    @property
    def line(self) -> str:
        return "  ".join(f"{label} {value}" for label, value in self.rows)

    @property
    def table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for label, value in self.rows:
            table.add_row(f"[dim]{label}[/]", value)
        return table


def view(totals: Totals, elapsed_s: float, *, rate: float | None, duration_s: float | None, stopping: bool) -> View:
    """The live figures. Percentiles appear when there are enough successes for them."""
    elapsed_s = max(0.0, elapsed_s)
    achieved = "–" if totals.rate is None else f"{totals.rate:.1f}"
    left = "" if duration_s is None else f", {format_left(duration_s - elapsed_s)}"
    failed = {outcome: count for outcome, count in totals.outcomes.items() if outcome in FAILURES}
    errors = ", ".join(f"{outcome.value} {count}" for outcome, count in sorted(failed.items())) or "0"
    cancelled = totals.outcomes[Outcome.CANCELLED]
    first = next((text for outcome, text in totals.errors.items() if outcome in failed), None)
    return View(
        (
            ("time", f"{elapsed_s:.0f} s{', stopping' if stopping else left}"),
            ("rate", f"{achieved}/s" + ("" if rate is None else f" of {rate:g}/s asked")),
            ("in flight", str(totals.in_flight)),
            ("ok", str(totals.outcomes[Outcome.OK])),
            ("failed", errors),
            ("late", str(totals.outcomes[Outcome.LATE])),
            *(() if not cancelled else (("cancelled", str(cancelled)),)),
            ("TTFT p50/p95", _percentiles(totals, "ttft")),
            ("ITL p50/p95", _percentiles(totals, "itl")),
            *((("workers died", str(totals.dead)),) if totals.dead else ()),
            *(() if first is None else (("first error", first),)),
        )
    )


def format_left(seconds: float) -> str:
    """Whole seconds, or what comes after: the last answers."""
    return f"{seconds:.0f} s left" if seconds > 0 else "last answers"


def _percentiles(totals: Totals, name: str) -> str:
    sketch = totals.sketches[name]
    return "/".join(format_seconds(sketch.percentile(p).value) for p in (0.5, 0.95)) + f" (n {sketch.n})"


def follow(coordinator: Coordinator) -> None:
    """Show the run until it has ended."""
    workload = coordinator.preparation.workload

    def now() -> View:
        return view(
            coordinator.totals(),
            coordinator.elapsed_s,
            rate=workload.rate,
            duration_s=workload.duration,
            stopping=coordinator.stop_reason is not None,
        )

    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        with Live(now().table, console=console, auto_refresh=False, transient=True) as live:
            while not coordinator.wait(_PANEL_S):
                live.update(now().table, refresh=True)
    else:
        while not coordinator.wait(_LINE_S):
            print(now().line, file=sys.stderr, flush=True)  # noqa: T201
