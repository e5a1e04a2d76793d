"""Alerts on what an SLI cannot see: no data, an engine that hangs, stands aside, restarts, is left by its users.

A hung engine leaves every counter flat; its ratio has no events, and no burn alert fires. A request that its user left
is in no latency histogram: the worst of them vanish from the SLI.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cliffwatch.slo.burn import Severity
from cliffwatch.slo.prometheus.annotations import runbook
from cliffwatch.slo.prometheus.promql import selector
from cliffwatch.slo.watch import Watch

HUNG_FOR = "2m"
ABSENT_FOR = "5m"
STALE_OVER = "30m"
STORM_OVER = "10m"
STORM_SHARE, STORM_LEAST = 0.2, 10  # of the requests that ended; aborts, below which a share says little

_BY_INSTANCE = "sum by (instance)"


@dataclass(frozen=True, slots=True)
class _Alert:
    name: str
    expression: str
    summary: str
    description: str
    held: str | None = None
    severity: Severity = Severity.PAGE


def health_rules(slo: str, watch: Watch) -> list[dict[str, Any]]:
    """Rules by the engine's signals; those whose signal it lacks are left out."""
    return [_rule(alert, slo, watch) for alert in (*_there(watch), *_working(watch), *_ending(watch))]


def _there(watch: Watch) -> Iterator[_Alert]:
    yield _Alert(
        "EngineDown",
        f"{selector('up', _of_target(watch))} == 0",
        "{{ $labels.instance }} cannot be scraped",
        "No figure of it arrives; its objectives show neither good nor bad events.",
        ABSENT_FOR,
    )
    if running := watch.catalog.signals.get("running"):
        yield _Alert(
            "EngineMetricsAbsent",
            f"absent({selector(running, watch.match)})",
            f"nothing exposes {running}",
            "Either no engine runs, or its metrics were renamed, or the rules match the wrong labels.",
            ABSENT_FOR,
        )


def _working(watch: Watch) -> Iterator[_Alert]:
    signals = watch.catalog.signals
    if not (generated := signals.get("generated")):
        return
    tokens = selector(generated, watch.match)
    if running := signals.get("running"):
        yield _Alert(
            "EngineHung",
            f"{_BY_INSTANCE} ({selector(running, watch.match)}) > 0\n"
            f"and {_BY_INSTANCE} (rate({tokens}[{HUNG_FOR}])) == 0",
            "{{ $labels.instance }} has requests in its batch and generates nothing",
            "Clients wait while every latency metric stands still, so that no burn alert can fire.",
            HUNG_FOR,
        )
    up = selector("up", _of_target(watch))
    yield _Alert(
        "EngineStale",
        f"{_BY_INSTANCE} (rate({tokens}[{STALE_OVER}])) == 0\n"
        f"and on () sum(rate({tokens}[{STALE_OVER}])) > 0\n"
        f"and on (instance) {_BY_INSTANCE} ({up}) > 0",
        f"{{{{ $labels.instance }}}} is up, and its figures have stood still for {STALE_OVER}",
        "Others generate meanwhile. It gets no requests, or exposes figures that nobody updates any more.",
        ABSENT_FOR,
        Severity.TICKET,
    )


def _ending(watch: Watch) -> Iterator[_Alert]:
    yield _Alert(
        "EngineRestarts",
        f"changes({selector('process_start_time_seconds', _of_target(watch))}[15m]) > 1",
        "{{ $labels.instance }} was restarted {{ $value }} times in 15 minutes",
        "Each restart drops what was in flight and empties the cache.",
        severity=Severity.TICKET,
    )
    if (aborts := watch.catalog.aborts) is None:
        return
    aborted, finished = (
        f"{_BY_INSTANCE} (increase({selector(one.metric, watch.match, one.match)}[{STORM_OVER}]))"
        for one in (aborts.aborted, aborts.finished)
    )
    yield _Alert(
        "EngineAbortStorm",
        f"{aborted} / (({finished} or {aborted} * 0) + {aborted}) > {STORM_SHARE}\nand {aborted} >= {STORM_LEAST}",
        "{{ $value | humanizePercentage }} of the requests to {{ $labels.instance }} were left before their end",
        f"Users or a gateway gave up on them within the last {STORM_OVER}; they are in no latency objective.",
    )


def _of_target(watch: Watch) -> dict[str, str]:
    """Of the labels to match, those that every metric of a target has."""
    return {label: value for label, value in watch.match.items() if label in {"job", "instance", *watch.target_labels}}


def _rule(alert: _Alert, slo: str, watch: Watch) -> dict[str, Any]:
    held = {"for": alert.held} if alert.held else {}
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **held,
        "labels": {"severity": alert.severity.value, "slo": slo},
        "annotations": {
            "summary": alert.summary, "description": alert.description, **runbook(watch, alert.name),
        },
    }  # fmt: skip
