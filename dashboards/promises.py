"""The promises that the boards start from: thresholds, targets and names out of an SLO file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cliffwatch.slo.prometheus.rules import objective_id
from cliffwatch.slo.sli import Sli
from cliffwatch.slo.spec import Objective, SloFile, load_slo

STANDARD = "chat"  # the preset that the checked-in boards are built from


@dataclass(frozen=True)
class Promise:
    """At most `threshold_s` for the share `target` of the events."""

    threshold_s: float
    target: float

    @property
    def edge(self) -> str:
        """The threshold as Prometheus 3 writes a bucket edge: 30.0, 2.5."""
        return repr(self.threshold_s)

    @property
    def percent(self) -> str:
        """The target for people: 95 %."""
        return f"{self.target * 100:g} %"


class Promises:
    """What an SLO file promises of each latency, for everybody: an objective of some input lengths is left out."""

    def __init__(self, slo: SloFile) -> None:
        self.name = slo.name
        self.objective = objective_id(slo.objectives[0])
        self._by_sli = {one.sli: _promise(one) for one in reversed(slo.objectives) if _of_everybody(one)}

    def of(self, sli: Sli, otherwise: Promise) -> Promise:
        """The file's first promise of an SLI, or what the board shows where there is none."""
        return self._by_sli.get(sli, otherwise)


def promises(path_or_preset: str | Path = STANDARD) -> Promises:
    """Read an SLO file or preset. Raises InputError."""
    return Promises(load_slo(path_or_preset))


def _of_everybody(one: Objective) -> bool:
    return one.threshold is not None and one.input_tokens is None and one.slices is None


def _promise(one: Objective) -> Promise:
    assert one.threshold is not None  # noqa: S101 - see _of_everybody
    return Promise(one.threshold, one.target)
