#!/usr/bin/env python3
"""Fit an engine profile's time coefficients to measured grids, and say how far off they are on rows they did not see.

    scripts/fit_profile.py MEASURED_FOLDER [--profile h200-llama3-8b]

The folder holds `grid_none.jsonl.gz` (closed grid of input length x batch, prefix cache off), `grid_prefix.jsonl.gz`
(the same, on) and perhaps `open_longtail.jsonl.gz` (open loop). Each row is a sequence: `input_tokens`, `batch`, `rep`,
`output_tokens`, `ttft`, `itl_mean`, `e2e`, seconds.

The grid's cells are split like a chess board: coefficients come from one colour, errors from the other. A cell is
played through the scheduler itself; its sequences are compared with the measured ones in order of their first token,
since which prompt of a batch goes first is the engine's choice.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from services.engine.core import Core, IntakeTime
from services.engine.kv_cache import KvCache
from services.engine.profile import Profile, load_profile
from services.engine.scheduler import Limits, Scheduler
from services.engine.sequence import Sequence
from services.engine.step_time import StepTime
from services.engine.tokenizer import BLOCK_TOKENS

INTAKE = tuple(IntakeTime.model_fields)
STEP = tuple(name for name, field in StepTime.model_fields.items() if field.is_required())
NAMES = (*INTAKE, *STEP)
FRESH_TOKENS = 16  # of each prompt in grid_prefix, not shared with the one sent before it
ROUNDS = 25
RACE_WEIGHT = 0.02

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One batch as measured: columns are TTFT, mean ITL and E2E, rows are sequences by TTFT."""

    prefix: bool
    input_tokens: int
    batch: int
    output_tokens: int
    measured: Array


def read_rows(path: Path) -> list[dict[str, float]]:
    """Successful rows of a measured file."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return [row for row in rows if row["error"] is None and row.get("phase") != "warm"]


def read_cells(folder: Path) -> list[Cell]:
    """All cells of both grids, one per repeat."""
    cells = []
    for name in ("grid_none", "grid_prefix"):
        groups: dict[tuple[int, int, int], list[dict[str, float]]] = defaultdict(list)
        for row in read_rows(folder / f"{name}.jsonl.gz"):
            groups[int(row["input_tokens"]), int(row["batch"]), int(row["rep"])].append(row)
        for (length, batch, _), rows in sorted(groups.items()):
            rows.sort(key=lambda row: row["ttft"])
            measured = np.array([[row["ttft"], row["itl_mean"], row["e2e"]] for row in rows])
            cells.append(Cell(name == "grid_prefix", length, batch, int(rows[0]["output_tokens"]), measured))
    return cells


def core_of(profile: Profile, theta: Mapping[str, float], *, sharing: bool) -> Core:
    """An engine with these coefficients."""
    step_time = profile.step_time.model_copy(update={name: theta[name] for name in STEP})
    kv = KvCache(profile.limits.kv_cache_tokens // BLOCK_TOKENS, sharing=sharing)
    limits = Limits(profile.limits.token_budget, profile.limits.max_num_seqs)
    return Core(Scheduler(limits, kv, step_time), IntakeTime(**{name: theta[name] for name in INTAKE}))


def play(core: Core, arrivals: Iterable[tuple[float, list[Sequence]]]) -> dict[Sequence, tuple[float, float]]:
    """Send requests (time, their sequences) in order; returns (first token, last token) times of each sequence."""
    stamps: dict[Sequence, tuple[float, float]] = {}

    def run_until(limit_s: float) -> None:
        while (at_s := core.next_event_s()) is not None and at_s <= limit_s:
            for sequence in core.advance(at_s).emitted:
                stamps[sequence] = (stamps.get(sequence, (at_s, at_s))[0], at_s)

    for at_s, sequences in arrivals:
        run_until(at_s)
        core.submit(sequences, at_s)
    run_until(float("inf"))
    return stamps


def play_cell(profile: Profile, theta: Mapping[str, float], cell: Cell) -> Array:
    """The cell as simulated, in the form of `Cell.measured`."""
    core = core_of(profile, theta, sharing=cell.prefix)
    shared = tuple(range((cell.input_tokens - FRESH_TOKENS) // BLOCK_TOKENS)) if cell.prefix else ()
    if cell.prefix:
        play(core, [(0.0, [Sequence(cell.input_tokens, 1, shared)])])
    batch = [Sequence(cell.input_tokens, cell.output_tokens, shared) for _ in range(cell.batch)]
    start_s = 1_000.0
    stamps = play(core, [(start_s, batch)])
    rows = [
        (first - start_s, (last - first) / (cell.output_tokens - 1), last - start_s) for first, last in stamps.values()
    ]
    return np.array(sorted(rows))[: len(cell.measured)]


def as_mapping(vector: Array) -> dict[str, float]:
    """Coefficients by name from their logarithms."""
    return dict(zip(NAMES, np.exp(vector).tolist(), strict=True))


def residuals(profile: Profile, vector: Array, cells: list[Cell]) -> Array:
    """Log ratios of TTFT and ITL, every cell weighing the same.

    What the last sequence of a cell sees depends on the work alone, and counts in full; which of the others meet in
    the first steps is partly a race, and counts `RACE_WEIGHT`.
    """
    theta = as_mapping(vector)
    parts = []
    for cell in cells:
        ratio = np.log(play_cell(profile, theta, cell)[:, :2] / cell.measured[:, :2])
        parts.append(np.concatenate([ratio[-1], RACE_WEIGHT * (ratio / np.sqrt(len(ratio))).ravel()]))
    return np.concatenate(parts)


def robust(values: Array, scale: float = 0.1) -> Array:
    """Residuals with the pull of far ones cut (Cauchy): which prompts meet in a step is partly a race."""
    weights: Array = 1 / np.sqrt(1 + (values / scale) ** 2)
    return weights


def fit(profile: Profile, cells: list[Cell]) -> Array:
    """Levenberg-Marquardt on the logarithms of the coefficients, from the profile's present ones."""
    present = {**profile.intake.model_dump(), **profile.step_time.model_dump()}
    vector = np.log(np.maximum([present[name] for name in NAMES], 1e-9))
    damping, step = 1e-2, 0.03
    current = residuals(profile, vector, cells)
    for round_number in range(ROUNDS):
        columns = []
        for index in range(len(vector)):
            moved = vector.copy()
            moved[index] += step
            columns.append((residuals(profile, moved, cells) - current) / step)
        weights = robust(current)
        jacobian = np.column_stack(columns) * weights[:, None]
        normal = jacobian.T @ jacobian
        gradient = jacobian.T @ (current * weights)
        change = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-9), -gradient)
        trial = vector + np.clip(change, -0.5, 0.5)
        tried = residuals(profile, trial, cells)
        loss, tried_loss = (float(np.log1p((values / 0.1) ** 2).sum()) for values in (current, tried))
        print(f"round {round_number:2d}  loss {loss:.4f} -> {tried_loss:.4f}", flush=True)
        if tried_loss < loss:
            vector, current, damping = trial, tried, damping / 3
            if loss - tried_loss < 1e-4 * loss:
                break
        else:
            damping *= 5
            if damping > 1e4:
                break
    return vector


def relative_errors(profile: Profile, theta: Mapping[str, float], cells: list[Cell]) -> dict[str, Array]:
    """|simulated / measured - 1| of every row, by figure and grid; `batch_ttft` is that of a batch's slowest prompt."""
    errors: dict[str, list[Array]] = defaultdict(list)
    for cell in cells:
        ratio = np.abs(play_cell(profile, theta, cell) / cell.measured - 1)
        grid = "prefix" if cell.prefix else "none"
        errors[f"batch_ttft_{grid}"].append(ratio[-1:, 0])
        for column, figure in enumerate(("ttft", "itl", "e2e")):
            errors[f"{figure}_{grid}"].append(ratio[:, column])
    return {name: np.concatenate(parts) for name, parts in errors.items()}


def play_open_loop(
    profile: Profile, theta: Mapping[str, float], path: Path
) -> Iterator[tuple[float, list[float], list[float]]]:
    """Play the measured arrivals of each rate; yields the rate, and TTFTs in seconds: simulated, measured."""
    by_rate: dict[float, list[dict[str, float]]] = defaultdict(list)
    for row in read_rows(path):
        by_rate[row["rate"]].append(row)
    for rate, rows in sorted(by_rate.items()):
        rows.sort(key=lambda row: row["wall"])
        sequences = [Sequence(int(row["input_tokens"]), int(row["output_tokens"])) for row in rows]
        sent = [row["wall"] - rows[0]["wall"] for row in rows]
        arrivals = [(at_s, [sequence]) for at_s, sequence in zip(sent, sequences, strict=True)]
        stamps = play(core_of(profile, theta, sharing=False), arrivals)
        simulated = [stamps[sequence][0] - at_s for at_s, sequence in zip(sent, sequences, strict=True)]
        yield rate, simulated, [row["ttft"] for row in rows]


def split(cells: list[Cell]) -> tuple[list[Cell], list[Cell]]:
    """The two colours of the chess board of input lengths and batches: seen and unseen by the fit."""
    lengths, batches = (sorted({getattr(cell, name) for cell in cells}) for name in ("input_tokens", "batch"))
    colours: tuple[list[Cell], list[Cell]] = ([], [])
    for cell in cells:
        colours[(lengths.index(cell.input_tokens) + batches.index(cell.batch)) % 2].append(cell)
    return colours


def main() -> None:
    """Fit, then print coefficients and errors."""
    parser = argparse.ArgumentParser(description="Fit an engine profile to measured grids.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profile", default="h200-llama3-8b", help="limits, and where the search starts")
    parser.add_argument("--check", action="store_true", help="only compare the profile as it is")
    arguments = parser.parse_args()
    profile = load_profile(arguments.profile)
    seen, unseen = split(read_cells(arguments.folder))
    theta = {**profile.intake.model_dump(), **profile.step_time.model_dump()}
    if not arguments.check:
        theta = as_mapping(fit(profile, seen))
    for name in NAMES:
        print(f"  {name}: {theta[name]:.4g}")
    for label, part in (("seen", seen), ("unseen", unseen)):
        for name, values in sorted(relative_errors(profile, theta, part).items()):
            median, p95 = np.median(values), np.percentile(values, 95)
            print(f"{label:6s} {name:17s} median {median:.4f}  p95 {p95:.4f}  n {len(values)}")
    open_loop = arguments.folder / "open_longtail.jsonl.gz"
    if open_loop.exists():
        for rate, *ttfts in play_open_loop(profile, theta, open_loop):
            (p50, measured_p50), (p95, measured_p95) = ([np.percentile(part, p) for part in ttfts] for p in (50, 95))
            print(
                f"open loop {rate:g}/s  TTFT p50 {p50:.3f} (measured {measured_p50:.3f}), "
                f"p95 {p95:.3f} (measured {measured_p95:.3f})  n {len(ttfts[0])}"
            )


if __name__ == "__main__":
    main()
