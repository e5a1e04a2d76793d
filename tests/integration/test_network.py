"""Master, engine and workers on machines of their own (network namespaces), the link keyed, one worker cut off."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import Manifest, RunState, read_manifest
from cliffwatch.records.reader import RunReader
from loadgen.link_key import new_key
from tests.servers.namespaces import HUB_ADDRESS, Network, network, why_not
from tests.servers.processes import end

pytestmark = pytest.mark.integration

CLIFFWATCH = Path(sys.executable).with_name("cliffwatch")
TARGET = f"http://{HUB_ADDRESS}:8000"
WORKLOAD = """\
name: over-the-network
requests: {requests}
arrivals: {{kind: poisson, rate: {rate}}}
input_tokens: {{kind: uniform, min: 32, max: 200}}
output_tokens: {{kind: uniform, min: 2, max: 12}}
timeouts: {{connect: 2s, first_token: 10s}}
"""
UNTIL_HEALTHY = f"""\
import time, urllib.request
for _ in range(300):
    try:
        urllib.request.urlopen("{TARGET}/health", timeout=2)
        break
    except OSError:
        time.sleep(0.1)
else:
    raise SystemExit("the engine is not ready")
"""


Process = subprocess.Popen[bytes]


@dataclass
class Site:
    """A hub with an engine, and two hosts; `start` begins a run over both."""

    net: Network
    folder: Path
    stack: ExitStack

    def start(self, requests: int, rate: float, *options: str) -> tuple[Process, dict[str, Process]]:
        workload, key = self.folder / "workload.yaml", self.folder / "key"
        workload.write_text(WORKLOAD.format(requests=requests, rate=rate))
        key.touch(0o600)
        key.write_text(new_key().text)
        link = ["--link-key-file", key]
        master = self.run(
            self.net.hub, CLIFFWATCH, "run", workload, "--target", TARGET, "--out", self.folder / "run", "--workers", 0,
            "--expect", 2, "--bind", HUB_ADDRESS, "--no-report", *link, *options,
        )  # fmt: skip
        hosts = [self.net.add_host(), self.net.add_host()]
        return master, {host: self.run(host, CLIFFWATCH, "run", "--master", HUB_ADDRESS, *link) for host in hosts}

    def run(self, host: str, *command: object) -> Process:
        process = self.net.start(host, list(command), self.folder / f"{host}-{command[1]}.log")
        self.stack.callback(end, process)
        return process

    def said(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text()}" for path in sorted(self.folder.glob("*.log")))

    def rows(self) -> int:
        try:
            return RunReader(self.folder / "run").count()
        except Exception:  # noqa: BLE001  not there yet, or being replaced
            return 0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with network() as net, ExitStack() as stack:
        made = Site(net, tmp_path, stack)
        made.run(net.hub, CLIFFWATCH, "engine", "--host", HUB_ADDRESS, "--port", 8000, "--speed", 20)
        subprocess.run(["ip", "netns", "exec", net.hub, sys.executable, "-c", UNTIL_HEALTHY], check=True, timeout=60)
        yield made


def closed(site: Site, issued: int) -> Manifest:
    """The closed run's manifest, its accounting checked against the rows."""
    manifest = read_manifest(site.folder / "run")
    assert manifest.accounting is not None and manifest.accounting.balanced
    with RunReader(site.folder / "run").connect() as connection:
        counts = dict(connection.execute("SELECT outcome, count(*) FROM requests GROUP BY 1").fetchall())
        ids = connection.execute("SELECT count(DISTINCT request_id), min(request_id), max(request_id) FROM requests")
        assert ids.fetchone() == (issued, 0, issued - 1)
    assert counts == {outcome.value: count for outcome, count in manifest.accounting.by_outcome.items()}
    assert manifest.accounting.issued == issued
    return manifest


@pytest.mark.parametrize(("on_loss", "state"), [("lost", "lost"), ("redistribute", "handed over")])
def test_a_worker_that_is_cut_off_stops_itself_and_the_others_go_on(site, on_loss, state):
    master, workers = site.start(450, 15, "--on-worker-loss", on_loss)
    assert wait_for(lambda: site.rows() > 40, timeout_s=60), site.said()
    host, process = next(iter(workers.items()))
    site.net.cut(host)
    cut_s = time.monotonic()
    process.wait(60)
    assert time.monotonic() - cut_s < 50
    master.wait(120)
    manifest = closed(site, 450)
    assert manifest.accounting is not None
    assert manifest.accounting.ok > 225
    assert (manifest.accounting.lost > 50) is (on_loss == "lost")
    gone = [worker for worker in manifest.workers if worker.state != "finished"]
    assert [worker.state for worker in gone] == [state]
    assert gone[0].rows > 20
    assert any(f"worker {gone[0].shard} " in text for text in manifest.warnings), manifest.warnings
    assert all(worker.clock is not None and worker.clock.bound_s < 0.02 for worker in manifest.workers)


def test_a_cut_of_a_few_seconds_costs_no_request(site):
    master, workers = site.start(300, 12.5)
    assert wait_for(lambda: site.rows() > 40, timeout_s=60), site.said()
    host = next(iter(workers))
    site.net.cut(host)
    time.sleep(5)
    site.net.mend(host)
    assert master.wait(90) in {0, 1}, site.said()
    manifest = closed(site, 300)
    assert (manifest.state, manifest.accounting.lost) == (RunState.COMPLETE, 0), manifest.partial_reason
    assert [worker.state for worker in manifest.workers] == ["finished", "finished"]
    for process in workers.values():
        assert process.wait(30) == 0
