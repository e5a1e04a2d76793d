"""What a master exposes, and that the documentation names all of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cliffwatch.records.clock import WorkerClock
from cliffwatch.records.counted import MAX_SETS_IN_ALL, RowCounts
from cliffwatch.records.folder import create_run
from cliffwatch.records.health import Health
from cliffwatch.records.readings import READINGS
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.slo.edges import histogram_edges
from cliffwatch.slo.spec import MAX_OBJECTIVES
from cliffwatch.workload.handover import Share
from loadgen.accounting import Tally
from loadgen.coordinator import Coordinator
from loadgen.members import Part
from loadgen.messages import plain
from loadgen.metrics import families
from loadgen.metrics.run import master_text
from loadgen.metrics.worker import worker_text
from tests.loadgen.conducted import preparation
from tests.loadgen.test_accounting import Nothing
from tests.records.synthetic import make_row

DOCS = (Path(__file__).resolve().parents[3] / "docs/live-metrics.md").read_text()
SLO = """\
name: all
objectives:
  - {sli: ttft, threshold: 1s, target: 90%, clock: sent}
  - {sli: ttfa, threshold: 1s, target: 90%}
  - {sli: ttfa, threshold: 1s, target: 90%, clock: sent}
  - {sli: e2e, threshold: 1s, target: 90%, clock: sent}
  - {sli: tpot, threshold: 1s, target: 90%}
  - {sli: ntpot, threshold: 1s, target: 90%}
"""


@pytest.fixture
def coordinator(tmp_path: Path) -> Coordinator:
    made = preparation(tmp_path)
    settings = replace(made.settings, metrics="9646", slo="slo.yaml")
    return Coordinator(SimpleNamespace(clients={}), replace(made, settings=settings, slo_text=SLO), ["a"])


def tally(coordinator: Coordinator, shard: int = 0) -> Tally:
    return Tally("run-1", shard, Nothing(), RowCounts(coordinator.preparation.edges()))


def exposed(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def documented() -> dict[str, tuple[str, str]]:
    rows = re.findall(r"^\| `(cliffwatch_client_\w+)` \| (\w+) \|([^|]*)\|", DOCS, re.MULTILINE)
    return {name: (kind, labels) for name, kind, labels in rows}


def test_before_a_run_it_says_what_it_is() -> None:
    for text in (master_text(None), worker_text([])):
        assert list(exposed("".join(text))) == ["cliffwatch_client_build_info"]


def test_the_documentation_has_every_metric_with_its_type() -> None:
    assert {name: kind for name, (kind, _) in documented().items()} == {one.name: one.kind for one in families.ALL}
    assert set(families.FIGURES) == set(READINGS)


def test_what_is_exposed_is_documented_with_its_labels(coordinator: Coordinator) -> None:
    own = tally(coordinator)
    for number in range(200):
        own.issued(number, 0)
        own.ended(make_row(number, tenant="a"))
    health = Health(measured_s=1.0, **dict.fromkeys(families.HEALTH, 1))  # type: ignore[arg-type]
    create_run(coordinator.run_dir, coordinator.preparation.manifest(0), "")
    report = own.report(health=health)
    coordinator.on_report({**plain(report), "clock": plain_clock()})
    give_parts(coordinator, 1)
    found = exposed("".join(master_text(coordinator)))
    common = set(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ", DOCS.split("L, whose")[1], re.MULTILINE))
    in_l = {name for cell in common for name in re.findall(r"`(\w+)`", cell)} - set(documented())
    shown = set()
    for name, samples in found.items():
        family = name if name in documented() else re.sub(r"_(bucket|count|sum)$", "", name)
        shown.add(family)
        kind, cell = documented()[family]
        allowed = in_l if cell.strip() == "L" else set(re.findall(r"`(\w+)`", cell))
        for labels, _ in samples:
            assert set(labels) - {"run", "le"} <= allowed, name
            assert family == "cliffwatch_client_build_info" or labels["run"] == "run-1"
        assert kind != "counter" or name.endswith("_total")
    # an event loop that was a second late at P99 makes a run invalid
    assert {labels["verdict"]: value for labels, value in found["cliffwatch_client_verdict"]} == {
        "VALID": 0, "DEGRADED": 0, "INVALID": 1,
    }  # fmt: skip
    reasons = {(labels["check"], labels["verdict"]) for labels, _ in found["cliffwatch_client_finding"]}
    assert ("loop lag", "INVALID") in reasons and ("send lag", "INVALID") not in reasons
    # the rest is there while it runs, and when it is over
    assert {one.name for one in families.ALL} - shown == {
        "cliffwatch_client_elapsed_seconds", "cliffwatch_client_asked_requests_per_second",
        "cliffwatch_client_issued_requests_per_second",
    }  # fmt: skip


def give_parts(coordinator: Coordinator, count: int) -> list[Part]:
    share = Share(0, 1)
    return [coordinator._roster.give(coordinator.members[0], share, share) for _ in range(count)]


def plain_clock() -> dict[str, Any]:
    clock = WorkerClock(offset_s=0.1, bound_s=0.001)
    return {"offset_s": clock.offset_s, "bound_s": clock.bound_s}


def test_a_dead_worker_s_counts_stay_and_its_gauges_go(coordinator: Coordinator) -> None:
    """Two workers: one had 10 requests, 5 of them in flight, and died; the other 3, 2 of them in flight."""
    for shard, (issued, ended) in enumerate([(10, 5), (3, 1)]):
        own = tally(coordinator, shard)
        for number in range(issued):
            own.issued(number, 0)
        for number in range(ended):
            own.ended(make_row(number))
        coordinator.on_report(plain(own.report()))

    def shown(name: str) -> float:
        return sum(value for _, value in exposed("".join(master_text(coordinator)))[f"cliffwatch_client_{name}"])

    assert (shown("issued_total"), shown("in_flight"), shown("requests_total")) == (13, 7, 6)
    give_parts(coordinator, 2)[0].lost = True
    assert (shown("issued_total"), shown("in_flight"), shown("requests_total")) == (13, 2, 6)


def test_the_bounds_in_the_documentation_are_computed() -> None:
    def series(edges: dict[str, tuple[float, ...]], thresholds: int = 0) -> int:
        of_one = sum(len(own) + 3 for own in edges.values()) + thresholds + 3  # with +Inf, count, sum; three counters
        return MAX_SETS_IN_ALL * of_one

    assert MAX_SETS_IN_ALL == 400 + len(Phase) * len(Outcome) == 451
    usual = histogram_edges(None, open_loop=True, engine_name="vllm")
    beside = {"ttf": "ttft_user_s", "e2e": "e2e_user_s"}
    everything = {figure: usual[beside.get(figure[:3], "itl_s")] for figure in READINGS}
    assert f"{series(usual):,} series" in DOCS
    assert f"{series(everything, MAX_OBJECTIVES):,}" in DOCS
