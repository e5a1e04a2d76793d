"""How many cliffs the detector finds, and how many it sees where there are none, on curves drawn anew.

    python -m benchmarks.cliffs [CURVES]

The curves are those of tests/surface/curves.py. Saves what it saw in benchmarks/results/cliffs.json. Goals: at least 95
of 100 cliffs found, at most one false cliff in 100 clean curves.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks._saved import conclude
from cliffwatch.surface.cliff import SECOND_DERIVATIVE, find_cliffs
from cliffwatch.surface.series import series_of
from tests.surface.curves import curve

FOUND, FALSE = 0.95, 0.01


def measure(curves: int, seed: int = 2) -> dict[str, float]:
    """Shares over so many curves with a cliff, and as many without."""
    generator = np.random.default_rng(seed)
    started = time.process_time()
    found = agreed = elsewhere = false = 0
    for _ in range(curves):
        points, place = curve(generator, cliff=True)
        cliffs = find_cliffs(series_of(points)).cliffs
        right = [one for one in cliffs if place is not None and one.low <= place[0] and one.high >= place[1]]
        found += bool(right)
        agreed += any(SECOND_DERIVATIVE in one.methods for one in right)
        elsewhere += len(cliffs) - len(right)
    for _ in range(curves):
        false += len(find_cliffs(series_of(curve(generator, cliff=False)[0])).cliffs)
    return {
        "curves": curves,
        "found": found / curves,
        "found_by_both_methods": agreed / curves,
        "found_elsewhere_per_curve": elsewhere / curves,
        "false_per_clean_curve": false / curves,
        "cpu_ms_per_curve": round((time.process_time() - started) / curves / 2 * 1e3, 2),
    }


if __name__ == "__main__":
    result = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
    conclude(
        "cliffs",
        result | {"goal_found": FOUND, "goal_false": FALSE},
        passed=result["found"] >= FOUND and result["false_per_clean_curve"] <= FALSE,
    )
