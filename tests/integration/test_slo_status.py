"""`slo status` and the SLO service on real Prometheus over the stand-in engine, with compiled rules and without."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from cliffwatch.cli.processes import wait_for
from cliffwatch.slo.live.alert_events import fingerprint
from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import load_slo
from tests.servers.client import complete_many
from tests.servers.engines import standin
from tests.servers.monitoring import alertmanager, prometheus, query
from tests.servers.processes import Server, free_port, get_text, running

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

REQUESTS = 40
SLO = """\
name: chat
objectives:
  - {sli: ttft, threshold: 1ms, target: 95%}
  - {sli: e2e, threshold: 60s, target: 95%}
  - {sli: availability, target: 99%}
watch: {engine: vllm, match: {job: engine}, group_by: [instance], scrape_interval: 1s}
"""


@dataclass(frozen=True)
class Watching:
    """The engine after its load, and two servers that saw it: with the compiled rules and without any."""

    slo: Path
    engine: Server
    ruled: Server
    plain: Server


def config(folder: Path, engine: int, rules: Path | None) -> Path:
    folder.mkdir()
    (folder / "prometheus.yml").write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(rules)] if rules else [],
                "scrape_configs": [
                    {"job_name": "engine", "static_configs": [{"targets": [f"127.0.0.1:{engine}"]}]},
                ],
            }
        )
    )
    return folder / "prometheus.yml"


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watching]:
    folder = tmp_path_factory.mktemp("status")
    (folder / "slo.yaml").write_text(SLO)
    (folder / "rules.yml").write_text(rule_file(compile_rules(load_slo(folder / "slo.yaml"))))
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(standin(folder))
        ruled, plain = (
            stack.enter_context(prometheus(folder / name, config(folder / name, engine.port, rules)))
            for name, rules in (("ruled", folder / "rules.yml"), ("plain", None))
        )
        # Counters of statuses are born with their first request: what came before their first scrape nobody can count.
        for seen, count in ((1, 1), (1 + REQUESTS, REQUESTS)):
            complete_many(engine.url, count, at_once=8, prompt_words=20, output_tokens=2)
            counted = f"sum(http_requests_total{{handler='/v1/completions'}}) == {seen}"
            for server in (ruled, plain):
                assert wait_for(lambda server=server, asked=counted: bool(query(server, asked)), timeout_s=20)
        for wanted in (
            "cliffwatch_slo:budget_left:ratio{objective=~'e2e.*'}",
            "ALERTS{alertname='SloBurn1h',alertstate='firing'}",
        ):
            assert wait_for(lambda wanted=wanted: bool(query(ruled, wanted)), timeout_s=20), wanted
        yield Watching(folder / "slo.yaml", engine, ruled, plain)


def status(watching: Watching, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cliffwatch", "slo", "status", watching.slo, "--prometheus", url, *options]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60, check=False)


def objectives(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    (slo,) = json.loads(done.stdout)["slos"]
    return {one["objective"].split("-")[0]: one for one in slo["objectives"]}


@pytest.mark.parametrize("name", ["ruled", "plain"])
def test_every_answer_missed_one_promise_and_met_the_others(watching: Watching, name: str) -> None:
    """No answer comes within 1 ms, all of them within a minute, none fails: 0, 1 and 1, with rules and without."""
    done = status(watching, getattr(watching, name).url, "--json")
    assert done.returncode == 1, done.stderr
    found = objectives(done)
    assert [found[sli]["state"] for sli in ("ttft", "e2e", "availability")] == ["exhausted", "good", "good"]
    assert {one["recorded"] for one in found.values()} == {name == "ruled"}
    for sli, attainment in (("ttft", 0.0), ("e2e", 1.0), ("availability", 1.0)):
        (group,) = found[sli]["groups"]
        assert group["labels"] == {"instance": f"127.0.0.1:{watching.engine.port}"}
        assert group["attainment"] == pytest.approx(attainment)
        assert group["budget_left"] == pytest.approx(1 - (1 - attainment) / (1 - found[sli]["target"]))
        assert group["events"] > 0
    fires = [burn["alert"] for burn in found["ttft"]["groups"][0]["burns"] if burn["fires"]]
    assert fires == ["SloBurn1h", "SloBurn6h", "SloBurn1d", "SloBurn3d"]


def test_the_view_and_the_alerts_agree(watching: Watching) -> None:
    done = status(watching, watching.ruled.url, "--json")
    (slo,) = json.loads(done.stdout)["slos"]
    ours = {
        (burn["alert"], one["objective"])
        for one in slo["objectives"]
        for group in one["groups"]
        for burn in group["burns"]
        if burn["fires"]
    }
    theirs = {
        (alert["name"], alert["labels"]["objective"])
        for alert in slo["prometheus_alerts"]
        if alert["state"] == "firing" and alert["name"].startswith("SloBurn")
    }
    assert ours
    assert ours == theirs


def test_the_screen_says_what_fires_and_ends_with_1(watching: Watching) -> None:
    done = status(watching, watching.ruled.url)
    assert done.returncode == 1
    assert "PAGES" in done.stdout
    assert "SloBurn1h (page)" in done.stdout
    assert "spent" in done.stdout


def test_nobody_there_is_exit_code_4(watching: Watching) -> None:
    done = status(watching, f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 4
    assert "Traceback" not in done.stderr


def test_an_engine_is_no_prometheus(watching: Watching) -> None:
    done = status(watching, watching.engine.url)
    assert done.returncode == 4
    assert "answered 404" in done.stderr


@pytest.mark.parametrize("name", ["ruled", "plain"])
def test_the_service_says_the_same(watching: Watching, tmp_path: Path, name: str) -> None:
    """And its history has the spent budget, its alerts the page that Prometheus itself has fired."""
    (tmp_path / "runs").mkdir()
    port = free_port()
    command = [
        sys.executable, "-m", "cliffwatch", "serve", "--runs", tmp_path / "runs", "--port", str(port),
        "--watch", watching.slo, "--prometheus", getattr(watching, name).url,
    ]  # fmt: skip
    url, log = f"http://127.0.0.1:{port}", tmp_path / "service.log"
    with running(command, url=url, health="/healthz", log=log, ready_within_s=30):
        slo = json.loads(get_text(f"{url}/v1/slos/chat"))["slo"]
        assert [one["state"] for one in slo["objectives"]] == ["exhausted", "good", "good"]
        history = json.loads(get_text(f"{url}/v1/slos/chat/history?span_s=600&points=200"))
        (group,) = history["objectives"][0]["groups"]
        assert group["budget_left"][0] is None
        assert [value for value in group["budget_left"] if value is not None][-1] == pytest.approx(1 - 1 / 0.05)
        alerts = json.loads(get_text(f"{url}/v1/alerts"))
        assert {one["burn"]["alert"] for one in alerts["firing"]} >= {"SloBurn1h", "SloBurn6h"}
        if name == "ruled":
            assert "SloBurn1h" in {one["name"] for one in alerts["prometheus"] if one["state"] == "firing"}
        assert "cliffwatch_slo_state{" in get_text(f"{url}/metrics")


@pytest.mark.usefixtures("alertmanager_tools")
def test_alertmanager_and_prometheus_tell_of_one_event(watching: Watching, tmp_path: Path) -> None:
    """A real Alertmanager notifies the service of the alert that Prometheus fires, which has it from `ALERTS` already.

    Its fingerprint is the one made of the series' labels; both are one event.
    """
    (tmp_path / "runs").mkdir()
    (tmp_path / "token").write_text("a-secret")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        sys.executable, "-m", "cliffwatch", "serve", "--runs", tmp_path / "runs", "--port", str(port),
        "--watch", watching.slo, "--prometheus", watching.ruled.url, "--webhook-token-file", tmp_path / "token",
    ]  # fmt: skip
    receiver = {"url": f"{url}/v1/alertmanager", "http_config": {"authorization": {"credentials": "a-secret"}}}
    config = {
        "route": {"receiver": "service", "group_wait": "0s", "group_by": ["..."]},
        "receivers": [{"name": "service", "webhook_configs": [receiver]}],
    }
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(config))
    (alert,) = query(watching.ruled, 'ALERTS{alertname="SloBurn1h",alertstate="firing"}')
    labels = {key: value for key, value in alert["metric"].items() if key not in {"__name__", "alertstate"}}
    starts = datetime.now(UTC).isoformat()  # it fired as the fixture was made, a moment ago
    with (
        running(command, url=url, health="/healthz", log=tmp_path / "service.log", ready_within_s=30),
        alertmanager(tmp_path, tmp_path / "alertmanager.yml") as manager,
    ):
        post(f"{manager.url}/api/v2/alerts", [{"labels": labels, "startsAt": starts}])

        def events() -> list[dict[str, Any]]:
            found = json.loads(get_text(f"{url}/v1/alerts"))["events"]
            return [one for one in found if one["name"] == "SloBurn1h"]

        received = 'cliffwatch_http_requests_total{route="/v1/alertmanager",status="200"}'
        assert wait_for(lambda: received in get_text(f"{url}/metrics"), timeout_s=20), (
            tmp_path / "service.log"
        ).read_text()
        (event,) = events()
        assert event["ended_unix_s"] is None
        (told,) = json.loads(get_text(f"{manager.url}/api/v2/alerts"))
        assert event["fingerprint"] == told["fingerprint"] == fingerprint(labels)


def post(url: str, document: object) -> None:
    request = urllib.request.Request(url, json.dumps(document).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        answer.read()
