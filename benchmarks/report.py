"""The HTML report of a run of 100,000 rows: time, memory of the process, size of the file.

    python -m benchmarks.report [ROWS]

Runs `cliffwatch report DIR --slo longtail --html FILE --json` as a user would, in a process of its own, and saves what
it saw in benchmarks/results/report.json. Goal for 100,000 rows: at most 5 s and 500 MB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._saved import conclude
from tests.records.synthetic import make_run

GOAL_S = 5.0
GOAL_MB = 500.0


def measure(rows: int) -> dict[str, float]:
    """Make a run of `rows` rows and report it once: wall seconds, peak resident MB, kB of HTML."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder) / "run", rows, rate=100.0).dir
        page = Path(folder) / "report.html"
        command = [sys.executable, "-m", "cliffwatch", "report", run, "--slo", "longtail", "--html", page, "--json"]
        started = time.perf_counter()
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - started
        code = os.waitstatus_to_exitcode(status)
        if code not in {0, 1}:
            sys.exit(f"cliffwatch report ended with {code}")
        return {
            "rows": rows,
            "wall_s": round(took, 2),
            "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
            "peak_rss_mb": round(usage.ru_maxrss / 1024, 1),
            "html_kb": round(page.stat().st_size / 1024, 1),
        }


def main() -> None:
    """Measure, print, save."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    measured = measure(rows)
    passed = measured["wall_s"] <= GOAL_S and measured["peak_rss_mb"] <= GOAL_MB
    result = {**measured, "goal_wall_s": GOAL_S, "goal_peak_rss_mb": GOAL_MB, "passed": passed}
    conclude("report", result, passed=passed)


if __name__ == "__main__":
    main()
