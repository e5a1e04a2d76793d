"""`cliffwatch calibrate`: how far off this host's own measuring is."""

from __future__ import annotations

import sys
from pathlib import Path

import locust  # noqa: F401  before our own modules: it makes blocking calls cooperative
import msgspec
import typer

from cliffwatch.errors import InputError
from cliffwatch.records.calibration import Calibration
from cliffwatch.report.words import bias
from cliffwatch.units import format_seconds
from loadgen.calibration.measure import IDLE_STREAMS, MOST_STREAMS, calibrate

app = typer.Typer(add_completion=False)


@app.command()
def measure(
    streams: int = typer.Option(
        IDLE_STREAMS, min=1, help=f"Streams at a time of the loaded level; {MOST_STREAMS} at most are opened."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    out: str = typer.Option("", metavar="FILE", help="Also write the JSON to a file."),
) -> None:
    """Measure this host's own bias against a built-in server of known latency. Takes under 10 s; sends nothing out."""
    if out and not Path(out).absolute().parent.is_dir():
        raise InputError("is not in a folder that exists", field="--out", value=out, allowed="a file that can be made")
    found = calibrate(streams, say)
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    if out:
        try:
            Path(out).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"cannot be written: {reason}", field="--out", value=out) from error
    typer.echo(text if as_json else in_words(found))


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"cliffwatch: {text}", file=sys.stderr, flush=True)  # noqa: T201


def in_words(found: Calibration) -> str:
    """A line a level and figure."""
    lines = []
    for level in found.levels:
        bounded = (
            ""
            if level.streams == level.asked_streams
            else f" (the most there are; {level.asked_streams} were asked for)"
        )
        core = f"{level.core_s_per_chunk * 1e6:.0f} µs of a core a chunk"
        lines.append(f"{level.name}: {level.streams} streams{bounded}, {core}")
        for name, error in (("TTFT", level.ttft), ("ITL", level.itl)):
            lines.append(f"  {name:4}  {bias(error)}, max {format_seconds(error.max_s)} (n {error.n:,})")
    return "\n".join(lines)
