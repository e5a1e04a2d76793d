"""The configuration around the rules: how engines are scraped, and who hears of which alert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cliffwatch.slo.prometheus.files import dump, object_name
from cliffwatch.slo.watch import Watch
from cliffwatch.units import format_range

WEBHOOK = "http://127.0.0.1:8080/v1/alertmanager"  # of `cliffwatch serve`
SECRETS = "/etc/alertmanager"
_URGENCY = {  # matcher, group_wait, repeat_interval; a severity that nobody knows is no reason to stay silent
    "page": ('severity!="ticket"', "10s", "4h"),
    "ticket": ('severity="ticket"', "5m", "24h"),
}


def scrape_config(slo: str, watch: Watch) -> str:
    """A file for `scrape_config_files`: the engine's path, at the interval that the rules count on."""
    engine = watch.catalog
    port = "its API's port" if engine.port is None else f"port {engine.port}, which is not its API's"
    head = [f"{engine.title} serves its metrics at {port}. The targets file lists the instances:"]
    head += [f'- targets: ["HOST:{engine.port or "PORT"}"]']
    if added := _added_by_targets(watch):
        head.append(f"  labels: {{{', '.join(f'{label}: ...' for label in added)}}}")
    job: dict[str, Any] = {
        "job_name": watch.match.get("job", slo),
        "scrape_interval": format_range(watch.scrape_interval),
        "metrics_path": engine.paths[0],
        "file_sd_configs": [{"files": [f"targets/{slo}.yml"]}],
    }
    if fixed := _fixed(watch, watch.target_labels):
        job["relabel_configs"] = [{"target_label": label, "replacement": value} for label, value in fixed.items()]
    return dump({"scrape_configs": [job]}, head=head)


def service_monitor(slo: str, watch: Watch) -> str:
    """A ServiceMonitor object for the Prometheus operator."""
    engine = watch.catalog
    fixed = _fixed(watch, ("job", *watch.target_labels))  # which the operator would make the Service's name
    endpoint: dict[str, Any] = {
        "port": "http" if engine.port is None else "metrics",
        "path": engine.paths[0],
        "interval": format_range(watch.scrape_interval),
    }
    if fixed:
        endpoint["relabelings"] = [{"targetLabel": label, "replacement": value} for label, value in fixed.items()]
    added = _added_by_targets(watch)
    spec = {
        "selector": {"matchLabels": {"app.kubernetes.io/name": watch.engine}},
        **({"targetLabels": list(added)} if added else {}),
        "endpoints": [endpoint],
    }
    of_port = "" if engine.port is None else f" ({engine.port})"
    head = [f"Give the Service of {engine.title} the label of matchLabels, and its port{of_port} the name of `port`."]
    return dump(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": object_name(slo),
            "spec": spec,
        },
        head=head,
    )


def alertmanager_config(slo: str, watch: Watch) -> str:
    """Routes, receivers and inhibition; every secret stands in a file of its own."""
    mine = f'slo="{slo}"'
    head = [
        f"Put into {SECRETS}: page_url and ticket_url, which alerts are posted to (or take other receivers), and",
        "cliffwatch-token, the bearer token that `cliffwatch serve --webhook-token-file` was given.",
    ]
    told = {"receiver": "cliffwatch", "continue": True, "group_wait": "1s", "group_interval": "1m"}
    routes = [
        {"matchers": [matcher], "receiver": name, "group_wait": wait, "repeat_interval": repeat}
        for name, (matcher, wait, repeat) in _URGENCY.items()
    ]
    of_slo = {
        "matchers": [mine],
        "receiver": "page",
        "group_by": ["slo", "objective", *watch.group_by],
        "group_interval": "1m",
        "routes": [told, *routes],
    }
    log = {"url": WEBHOOK, "http_config": {"authorization": {"credentials_file": f"{SECRETS}/cliffwatch-token"}}}
    receivers = [
        {"name": "shown-only"},
        {"name": "cliffwatch", "webhook_configs": [log]},
        *({"name": name, "webhook_configs": [{"url_file": f"{SECRETS}/{name}_url"}]} for name in _URGENCY),
    ]
    return dump(
        {
            "route": {"receiver": "shown-only", "routes": [of_slo]},
            "inhibit_rules": _inhibitions(mine, watch),
            "receivers": receivers,
        },
        head=head,
    )


def _inhibitions(mine: str, watch: Watch) -> list[dict[str, Any]]:
    """A page silences the ticket of the same promise and group. An engine that is down silences its own burns, for they
    show figures from before, and somebody is awake; where instances share a budget, others may burn too."""
    burns = 'alertname=~"SloBurn.+"'
    found = [
        {
            "source_matchers": [mine, burns, 'severity="page"'],
            "target_matchers": [mine, burns, 'severity="ticket"'],
            "equal": ["objective", *watch.group_by],
        }
    ]
    if "instance" in watch.group_by:
        found.append(
            {
                "source_matchers": [mine, 'alertname="EngineDown"'],
                "target_matchers": [mine, burns],
                "equal": ["instance"],
            }
        )
    return found


def _fixed(watch: Watch, labels: Sequence[str]) -> dict[str, str]:
    """Those of these labels that the rules want with one value, as a replacement (`$1` would be a group)."""
    return {label: value.replace("$", "$$") for label, value in watch.match.items() if label in labels}


def _added_by_targets(watch: Watch) -> tuple[str, ...]:
    """Labels that each target brings itself."""
    return tuple(label for label in watch.target_labels if label not in watch.match)
