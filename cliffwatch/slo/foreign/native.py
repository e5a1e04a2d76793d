"""Our own SLO files, written."""

from __future__ import annotations

from typing import Any

from cliffwatch.slo.prometheus.files import plain
from cliffwatch.slo.schema import HINT
from cliffwatch.slo.spec import SloFile
from cliffwatch.units import format_range


def slo_yaml(slo: SloFile) -> str:
    """An SLO file that reads back as `slo`; what is as by default is left out."""
    document: dict[str, Any] = slo.model_dump(mode="json", exclude_defaults=True)
    if slo.watch is not None and "period" in document["watch"]:
        if slo.watch.calendar is None:
            document["watch"]["period"] = format_range(slo.watch.period)
        else:
            del document["watch"]["period"]  # it follows from the calendar
    return HINT + plain(document)
