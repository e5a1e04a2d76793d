"""What a run's manifest says of its workload, however the run is made."""

from __future__ import annotations

from typing import Any

from cliffwatch.records.manifest import Cost
from cliffwatch.workload.schedule import schedule_hash
from cliffwatch.workload.spec import Workload


def manifest_fields(workload: Workload) -> dict[str, Any]:
    """The fields of `Manifest` that the workload alone decides."""
    cost = workload.cost
    return {
        "name": workload.name,
        "open_loop": workload.open_loop,
        "seed": workload.seed,
        "schedule_hash": schedule_hash(workload),
        "workload": workload.model_dump(mode="json"),
        "planned_duration_s": workload.duration,
        "planned_requests": workload.planned_requests,
        "cost": None if cost is None else Cost(gpu_hour_usd=cost.gpu_hour_usd, gpus=cost.gpus),
    }
