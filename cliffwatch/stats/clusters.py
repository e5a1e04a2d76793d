"""How much less a correlated series tells than independent values would.

Requests that wait in one queue are alike: of a thousand in a row, a hundred may be as good as independent. The share of
requests under a value is therefore counted in equal windows of time, and its variance between windows set against what
independent requests would show (ratio estimator for clusters; Cochran, "Sampling Techniques", 3rd ed., 9A.1; windows
as batches: Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30, 1982).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

WINDOWS = 20  # within the 10 to 30 that Schmeiser advises: longer windows are less correlated with each other
# The variance between 20 windows is itself uncertain; this is (t / z)^2 of 19 degrees of freedom at 95 %.
_UNSURE = (2.0930 / 1.9600) ** 2
Counts = Sequence[float] | np.ndarray[Any, Any]


def inflation(hits: Counts, totals: Counts) -> float:
    """By how much correlation inflates the variance of sum(hits) / sum(totals), from counts of each window.

    1 where windows differ no more than independent requests would, or where there is nothing to tell by: no hits, only
    hits, or a single window with requests.

    Raises:
        ValueError: the two are not of one length.
    """
    good, n = np.asarray(hits, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    if good.shape != n.shape:
        raise ValueError(f"hits and totals must have one length; got {good.size} and {n.size}")
    windows, total = int(np.count_nonzero(n)), float(n.sum())
    share = float(good.sum()) / total if total else 0.0
    if windows < 2 or not 0 < share < 1:
        return 1.0
    between = float(np.sum((good - share * n) ** 2)) * windows / (windows - 1)
    found = between / (total * share * (1 - share))
    return found * _UNSURE if found > 1 else 1.0
