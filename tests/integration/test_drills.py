"""Drills: what befalls an engine on demand makes the alert of that name fire, and no other."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from cliffwatch.cli.processes import wait_for
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import parse_slo
from cliffwatch.units import format_range, parse_seconds
from tests.servers.engines import standin
from tests.servers.monitoring import prometheus, query
from tests.servers.processes import Server, get_text
from tests.services.engine.conftest import call, connect, raw_request

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

FACTOR = 40  # two minutes without a token are three seconds, a quarter of an hour is 22.5 s
SLO = "{name: s, objectives: [{sli: ttft, threshold: 2.5s, target: 99%}], watch: {engine: vllm, match: {job: engine}}}"


def quick(text: str) -> str:
    """A length of time, compressed."""
    return format_range(parse_seconds(text) / FACTOR)


def health_rules() -> dict[str, Any]:
    """As `slo compile` writes them, with their time compressed."""
    (group,) = (one for one in compile_rules(parse_slo(SLO, source="s")).groups if one["name"] == "s-health")
    rules = [
        {**rule, "expr": re.sub(r"(?<=\[)\w+(?=])", lambda found: quick(found[0]), rule["expr"])}
        | ({"for": quick(rule["for"])} if "for" in rule else {})
        for rule in group["rules"]
    ]
    return {"groups": [{"name": "health", "interval": "250ms", "rules": rules}]}


def config(folder: Path, engine: Server) -> Path:
    (folder / "rules.yml").write_text(yaml.safe_dump(health_rules()))
    scrape_engine = {"job_name": "engine", "static_configs": [{"targets": [f"127.0.0.1:{engine.port}"]}]}
    path = folder / "prometheus.yml"
    intervals = {"scrape_interval": "250ms", "scrape_timeout": "250ms", "evaluation_interval": "250ms"}
    path.write_text(
        yaml.safe_dump({"global": intervals, "rule_files": ["rules.yml"], "scrape_configs": [scrape_engine]})
    )
    return path


def firing(server: Server) -> set[str]:
    alerts = json.loads(get_text(f"{server.url}/api/v1/alerts"))["data"]["alerts"]
    return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def test_a_hang_and_restarts_are_alerted(tmp_path: Path) -> None:
    with standin(tmp_path, "--admin") as engine, prometheus(tmp_path, config(tmp_path, engine)) as server:

        def fault(**written: Any) -> None:
            assert call(engine, "/admin/faults", written)[0] == 201

        def fires(*names: str) -> bool:
            return wait_for(lambda: firing(server) == set(names), timeout_s=20, every_s=0.1)

        with closing(connect(engine)) as connection:
            body = {"prompt": "a", "max_tokens": 30000, "stream": True}
            connection.sendall(raw_request("/v1/completions", body))
            assert wait_for(lambda: bool(query(server, "vllm:num_requests_running == 1")), timeout_s=10)
            assert wait_for(lambda: bool(query(server, "rate(vllm:generation_tokens_total[3s]) > 0")), timeout_s=10)
            assert firing(server) == set()
            fault(kind="hang")
            assert fires("EngineHung"), firing(server)
            call(engine, "/admin/faults", b"", method="DELETE")
            assert fires(), firing(server)
        for times in (1, 2):
            fault(kind="crash", down="500ms", load="500ms")
            seen = f"changes(process_start_time_seconds[22s]) == {times}"
            assert wait_for(lambda: bool(query(server, seen)), timeout_s=10, every_s=0.1)  # noqa: B023
        assert fires("EngineRestarts"), firing(server)
