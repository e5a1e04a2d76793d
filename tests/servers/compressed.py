"""What `slo compile` writes, with its time compressed: every length of time in it divided by `FACTOR`.

An hour's window becomes half a minute, so that a test can wait for a page; factors and shares stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from cliffwatch.slo.prometheus.forms import FORMS
from cliffwatch.slo.prometheus.rules import compile_rules, watch_of
from cliffwatch.slo.spec import SloFile
from cliffwatch.units import format_range, parse_seconds

FACTOR = 120
_RANGE = re.compile(r"(?<=[\[:])\d+[smhd](?=[\]:])")
_SECONDS = re.compile(r"(?<=\* )\d+")  # of a window, by which a rate becomes a count


def chain_config(
    slo: SloFile, into: Path, *, engine: str, alertmanager: str, service: str, token: Path, page: str
) -> tuple[Path, Path]:
    """Configuration files of Prometheus and Alertmanager; alerts on the engine's health are left out.

    `service` is the SLO service (its URL), `token` the file of its token; `page` is posted to in place of a pager.
    """
    written = {name: yaml.safe_load(_compiled(slo, name)) for name in ("prometheus", "scrape", "alertmanager")}
    rules = {"groups": [one for one in written["prometheus"]["groups"] if not one["name"].endswith("-health")]}
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        rule["expr"] = _RANGE.sub(lambda found: _shorter(found[0]), rule["expr"])
        if ":count" in rule.get("record", ""):
            rule["expr"] = _SECONDS.sub(lambda found: f"{int(found[0]) / FACTOR:g}", rule["expr"])
    routes = _quick(written["alertmanager"])
    for receiver in routes["receivers"]:
        for hook in receiver.get("webhook_configs", ()):
            hook.update(_service_hook(service, token) if "url" in hook else {"url_file": str(into / "page_url")})
    main = {
        "global": {"evaluation_interval": "500ms"},
        "rule_files": ["rules.yml"],
        "scrape_config_files": ["scrape.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
    }
    (into / "targets").mkdir()
    (into / "page_url").write_text(page)
    targets = [{"targets": [engine]}]
    for name, document in {
        "prometheus.yml": main,
        "rules.yml": rules,
        "scrape.yml": _quick(written["scrape"]),
        f"targets/{slo.name}.yml": targets,
        "alertmanager.yml": routes,
    }.items():
        (into / name).write_text(yaml.safe_dump(document))
    return into / "prometheus.yml", into / "alertmanager.yml"


def _service_hook(service: str, token: Path) -> dict[str, Any]:
    return {
        "url": f"{service}/v1/alertmanager",
        "http_config": {"authorization": {"credentials_file": str(token)}},
    }


def _compiled(slo: SloFile, form: str) -> str:
    return FORMS[form].text(slo.name, watch_of(slo, source="slo"), compile_rules(slo))


def _shorter(length: str) -> str:
    return format_range(parse_seconds(length) / FACTOR)


def _quick(document: Any) -> Any:
    """A configuration with its waits and intervals compressed."""
    if isinstance(document, list):
        return [_quick(one) for one in document]
    if not isinstance(document, dict):
        return document
    timed = ("group_wait", "group_interval", "repeat_interval", "scrape_interval")
    return {key: _shorter(value) if key in timed else _quick(value) for key, value in document.items()}
