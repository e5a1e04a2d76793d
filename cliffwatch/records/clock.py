"""How far a load worker's clocks are from the master's, as a run's manifest keeps it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerClock:
    """One worker over one run. Bounds are certain, not a deviation: the truth is within `bound` of the value.

    Attributes:
        offset_s: the worker's wall clock minus the master's, when the run began. The schedule does not depend on it.
        bound_s: of that, and of how well the run's zero is known on the worker: half a round trip at most.
        drift_s: how much the worker's monotonic clock went ahead of the master's from the run's zero to the last
            look; None where there was no second look.
        drift_bound_s: of that.
    """

    offset_s: float
    bound_s: float
    drift_s: float | None = None
    drift_bound_s: float | None = None

    @property
    def proven_drift_s(self) -> float | None:
        """The least drift that the bounds allow, either way."""
        if self.drift_s is None or self.drift_bound_s is None:
            return None
        return max(0.0, abs(self.drift_s) - self.drift_bound_s)
