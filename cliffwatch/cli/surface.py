"""`cliffwatch surface`: latency over the dimensions of the traffic, from a run or from measurements of another tool."""

from __future__ import annotations

import typer

from cliffwatch.cli.lazy import Table, lazy_group

COMMANDS: Table = {
    "at": (
        "cliffwatch.cli.surface_at:app",
        "What an untried length and batch would cost, with an interval.",
    ),
    "grid": (
        "cliffwatch.cli.surface_grid:app",
        "A statistic of a latency over two or three dimensions, with n and interval of each cell.",
    ),
    "cliffs": (
        "cliffwatch.cli.surface_cliffs:app",
        "Where latency jumps by more than its trend and its noise explain, and why.",
    ),
    "knee": ("cliffwatch.cli.surface_along:knee_app", "Where a curve begins to grow in another way."),
    "exponent": (
        "cliffwatch.cli.surface_exponent:app",
        "With which power of length a latency grows, or that it follows none.",
    ),
    "use": (
        "cliffwatch.cli.surface_use:app",
        "How much of the hardware's arithmetic (MFU) and memory bandwidth each length and batch used.",
    ),
    "drift": ("cliffwatch.cli.surface_drift:app", "How far a knee moved from run to run, and what moved it."),
}

app = typer.Typer(cls=lazy_group(COMMANDS), no_args_is_help=True, add_completion=False)


@app.callback()
def surface() -> None:
    """Find where latency jumps over input length, batch, concurrency or rate, and what an untried point would cost."""
