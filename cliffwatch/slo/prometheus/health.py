"""Alerts on what an SLI cannot see: no data, an engine that hangs, one that restarts.

A hung engine leaves every counter flat; its ratio has no events, and no burn alert fires.
"""

from __future__ import annotations

from typing import Any

from cliffwatch.slo.prometheus.promql import selector
from cliffwatch.slo.watch import Watch

HUNG_FOR = "2m"
ABSENT_FOR = "5m"


def health_rules(slo: str, watch: Watch) -> list[dict[str, Any]]:
    """Rules by the engine's signals; those whose signal it lacks are left out."""
    signals, labels = watch.catalog.signals, {"slo": slo}
    rules = [
        _rule(
            "EngineDown",
            f"{selector('up', _of_target(watch))} == 0",
            ABSENT_FOR,
            labels,
            "{{ $labels.instance }} cannot be scraped",
            "No figure of it arrives; its objectives show neither good nor bad events.",
        )
    ]
    if running := signals.get("running"):
        rules.append(
            _rule(
                "EngineMetricsAbsent",
                f"absent({selector(running, watch.match)})",
                ABSENT_FOR,
                labels,
                f"nothing exposes {running}",
                "Either no engine runs, or its metrics were renamed, or the rules match the wrong labels.",
            )
        )
    if (generated := signals.get("generated")) and running:
        rules.append(
            _rule(
                "EngineHung",
                f"sum by (instance) ({selector(running, watch.match)}) > 0\n"
                f"and sum by (instance) (rate({selector(generated, watch.match)}[{HUNG_FOR}])) == 0",
                HUNG_FOR,
                labels,
                "{{ $labels.instance }} has requests in its batch and generates nothing",
                "Clients wait while every latency metric stands still, so that no burn alert can fire.",
            )
        )
    rules.append(
        _rule(
            "EngineRestarts",
            f"changes({selector('process_start_time_seconds', _of_target(watch))}[15m]) > 1",
            None,
            {**labels, "severity": "ticket"},
            "{{ $labels.instance }} was restarted {{ $value }} times in 15 minutes",
            "Each restart drops what was in flight and empties the cache.",
        )
    )
    return rules


def _of_target(watch: Watch) -> dict[str, str]:
    """Of the labels to match, those that every metric of a target has."""
    return {label: value for label, value in watch.match.items() if label in {"job", "instance", *watch.target_labels}}


def _rule(
    name: str, expression: str, held: str | None, labels: dict[str, str], summary: str, description: str
) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": name, "expr": expression}
    if held:
        rule["for"] = held
    rule["labels"] = {"severity": "page", **labels}
    rule["annotations"] = {"summary": summary, "description": description}
    return rule
