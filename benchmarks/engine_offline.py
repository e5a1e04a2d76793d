"""The engine without HTTP, on one core: tokens a second step by step, and a day of traffic with leaps over like steps.

    taskset -c 0 python -m benchmarks.engine_offline

The day is the chat preset for 24 hours, written as a run. Saves what it saw in benchmarks/results/engine_offline.json.
Goals: 100,000 chunks/s step by step, a day in under 60 s.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from typer.testing import CliRunner

from benchmarks._saved import conclude
from cliffwatch.records.manifest import read_manifest
from cliffwatch.workload.spec import load_workload, with_changes
from services.engine.command import app
from services.engine.profile import DEFAULT_PROFILE, load_profile
from services.engine.simulation import Simulation

GOAL_PER_S, GOAL_DAY_S = 100_000, 60.0


def step_by_step() -> dict[str, float]:
    """Every step on its own: tokens a second of CPU time."""
    workload = with_changes(load_workload("chat"), duration="10m", requests=None)
    simulation = Simulation(workload, load_profile(DEFAULT_PROFILE), leaps=False)
    started_s = time.process_time()
    requests = sum(1 for _ in simulation.rows())
    took_s = time.process_time() - started_s
    return {"requests": requests, "tokens": simulation.tokens, "chunks_per_s": round(simulation.tokens / took_s)}


def a_day() -> dict[str, float]:
    """A day's run folder, from the workload to the closed manifest."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        started_s, started_cpu_s = time.monotonic(), time.process_time()
        done = CliRunner().invoke(app, ["simulate", "chat", "--duration", "24h", "--out", str(out)])
        took_s, cpu_s = time.monotonic() - started_s, time.process_time() - started_cpu_s
        if done.exit_code:
            raise SystemExit(done.output)
        accounting = read_manifest(out).accounting
    return {"requests": accounting.issued if accounting else 0, "took_s": round(took_s, 1), "cpu_s": round(cpu_s, 1)}


if __name__ == "__main__":
    stepped, day = step_by_step(), a_day()
    conclude(
        "engine_offline",
        {"step_by_step": stepped, "a_day": day, "goal_chunks_per_s": GOAL_PER_S, "goal_day_s": GOAL_DAY_S},
        passed=stepped["chunks_per_s"] >= GOAL_PER_S and day["took_s"] <= GOAL_DAY_S,
    )
