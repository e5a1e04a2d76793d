"""docs/benchmarks.md, written from the saved results: what it says is what was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
TITLES = {
    "streams_10": "10 streams, TTFT 50 ms, ITL 10 ms",
    "streams_200": "200 streams in waves, TTFT 200 ms, ITL 20 ms",
    "streams_500": "500 streams in waves: 25,000 chunks a second",
    "bulk": "Chunks as fast as the server sends them",
    "short": "Answers of one token",
    "poisson": "Poisson arrivals as the server read them",
    "merged_percentiles": "Percentiles merged from workers' sketches",
    "send_lag": "Send lag at 500 requests a second",
    "many_streams": "10,000 streams at once",
    "master_cpu": "The master's processor time",
    "memory": "A worker's memory over a million requests",
}
PACED = (
    "Where the core time goes (py-spy, which stops the worker so often that it is behind): then a chunk costs "
    "13.6 us instead of about 25, so half of it is waking up for one chunk at a time, of which the floor's "
    "figure is almost nothing else. Of 13.6 us, 4.3 are reading, framing and timing a chunk, and 8 are its share of "
    "preparing, sending and recording its request."
)
ONE_TOKEN = (
    "Where the time of a request goes (py-spy): 20 % the kernel's send, 14 % building its prompt, 14 % counting and "
    "writing its row (5 % of it the journal that survives a kill), 13 % reading its answer, 12 % judging it, 3 % the "
    "note that it was issued; the rest is greenlets and bookkeeping."
)
WHY_MISSED = {"streams_200": PACED, "streams_500": PACED, "short": ONE_TOKEN}
INTRODUCTION = """\
# Measured beside the machine's limit and peers

`python -m benchmarks.loadgen` (about 9 minutes; `--only PART` for some) measured this and wrote this page from
`benchmarks/results/loadgen_*.json`. A server whose latency is known exactly runs on one core and logs each read and
write on the same clock; the clients run on the other core, in turn, in one round. `floor` is an epoll loop in Rust that
only counts bytes: what the machine allows. Locust is its FastHttpUser as documented, vLLM is `vllm bench serve`. Times
of another machine are another's: compare within a row.
"""


def write() -> None:
    """Write the page from the saved rows."""
    PAGE.write_text(text())


def text() -> str:
    """The page in Markdown."""
    saved = {name: RESULTS / f"loadgen_{name}.json" for name in TITLES}
    rows = [json.loads(path.read_text()) for path in saved.values() if path.is_file()]
    return INTRODUCTION + "".join(f"\n{line}" for row in rows for line in _section(row)) + "\n"


def _section(row: dict[str, Any]) -> Iterator[str]:
    machine = row["machine"]
    settings = ", ".join(f"{name} {value}" for name, value in row["settings"].items())
    yield f"## {TITLES[row['name']]}"
    yield ""
    where = f"{machine['cores']} cores, {machine['processor']}, Python {machine['python']}"
    yield f"{settings}. {row['date']} UTC, {where}."
    yield ""
    yield "| figure | seen | n | bar |"
    yield "|---|---|---|---|"
    for one in row["figures"]:
        bar = (
            "" if one["bar"] is None else f"{one['wanted']} {one['bar']:g}: {'reached' if one['reached'] else 'missed'}"
        )
        note = f" ({one['note']})" if one["note"] else ""
        yield f"| {one['name']}{note} | {one['value']:,.6g} {one['unit']} | {one['n']:,} | {bar} |"
    yield ""
    for peer, said in row["same_round"].items():
        yield f"* {peer}: " + ", ".join(f"{name} {_shown(value)}" for name, value in said.items())
    yield ""
    if not row["reached"] and row["name"] in WHY_MISSED:
        yield from (WHY_MISSED[row["name"]], "")


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}"
