"""The fast-burn alert goes all the way: a slow engine, real Prometheus, real Alertmanager, a webhook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cliffwatch.cli.processes import wait_for
from tests.servers import stack
from tests.servers.client import complete_many
from tests.servers.engines import standin
from tests.servers.monitoring import alertmanager, prometheus, query
from tests.servers.processes import Server, free_port, get_text

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("alertmanager_tools")]


def _firing(server: Server) -> list[dict[str, Any]]:
    alerts = json.loads(get_text(f"{server.url}/api/v1/alerts"))["data"]["alerts"]
    return [alert for alert in alerts if alert["state"] == "firing"]


def test_misses_of_the_objective_reach_the_webhook(tmp_path: Path) -> None:
    port = free_port()
    # At a fiftieth of its speed a step takes half a second and more; 8 requests at once, the others wait.
    with (
        standin(tmp_path, "--speed", "0.02", "--max-num-seqs", "8", "--model", "slow") as slow,
        stack.webhook() as (url, bodies),
        alertmanager(tmp_path, stack.alertmanager_config(tmp_path, webhook=url)) as manager,
    ):
        config = stack.prometheus_config(
            tmp_path,
            engine=f"127.0.0.1:{slow.port}",
            slo=f"127.0.0.1:{free_port()}",
            alertmanager=f"127.0.0.1:{manager.port}",
            prometheus=f"127.0.0.1:{port}",
        )
        with prometheus(tmp_path, config, port=port) as server:
            assert wait_for(lambda: bool(query(server, 'up{job="engine"} == 1')), timeout_s=30)
            assert not _firing(server)
            complete_many(slow.url, 90, at_once=90, prompt_words=100, output_tokens=1)
            assert wait_for(lambda: bool(_firing(server)), timeout_s=60), query(server, "{__name__=~'model_name:.*'}")
            (alert,) = _firing(server)
            assert alert["labels"]["alertname"] == "TtftFastBurn"
            assert alert["labels"]["model_name"] == "slow"
            assert wait_for(lambda: bool(bodies), timeout_s=60)
    message = json.loads(bodies[0])
    assert message["status"] == "firing"
    assert message["alerts"][0]["labels"]["severity"] == "page"
    assert "2.5 s" in message["alerts"][0]["annotations"]["summary"]
