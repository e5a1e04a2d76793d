"""A real Prometheus scrapes a real run: what it ends with is what the rows say, request for request."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import read_manifest
from cliffwatch.records.reader import RunReader
from cliffwatch.slo.judge import judge
from cliffwatch.slo.spec import load_slo
from dashboards import export
from dashboards.load import board as load_board
from loadgen.processes import LOCUSTFILE
from tests.servers import load
from tests.servers.boards import check_queries, check_variables
from tests.servers.engines import standin
from tests.servers.monitoring import PROMETHEUS_BIN, prometheus, query
from tests.servers.processes import Server, descendants, free_port, get_text

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

WORKLOAD = {
    "name": "live",
    "requests": 400,
    "arrivals": {"kind": "poisson", "rate": 40},
    "input_tokens": {"kind": "uniform", "min": 32, "max": 3000},
    "output_tokens": {"kind": "uniform", "min": 1, "max": 40},
    "batch": {"sizes": [1, 2, 4], "token_budget": 6000},
    "cold_start": {"requests": 2},
    "warmup": {"requests": 40},
    "timeouts": {"total": "120ms"},  # the longer answers do not make it, so that failures are judged too
}
SLO = """\
name: live
objectives:
  - {sli: ttft, threshold: 13ms, target: 50%}
  - {sli: ttft, threshold: 17ms, target: 50%}
  - {sli: ttft, threshold: 31ms, target: 50%, clock: sent}
  - {sli: itl, threshold: 2.3ms, target: 50%}
  - {sli: tpot, threshold: 2.7ms, target: 50%}
  - {sli: e2e, threshold: 61ms, target: 50%}
  - {sli: e2e, threshold: 97ms, target: 50%}
"""
METRIC = {"ttft_user_s": "ttft", "ttft_s": "ttft_service", "itl_s": "itl", "tpot_s": "tpot", "e2e_user_s": "e2e"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standin(tmp_path_factory.mktemp("engine"), "--speed", "4") as server:
        yield server.url


@contextmanager
def scraping(folder: Path, *ports: int) -> Iterator[Server]:
    """Prometheus that scrapes each port every second, as a job of its own."""
    jobs = [
        {"job_name": f"port-{number}", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        for number, port in enumerate(ports)
    ]
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    with prometheus(folder, config) as server:
        yield server


def last(server: Server, metric: str, aggregation: str = "sum") -> dict[tuple[str, ...], float]:
    """The newest values, aggregated, by the values of their labels in order of the labels' names."""
    found = query(server, f"{aggregation} (last_over_time({metric}[10m]))")
    return {tuple(value for _, value in sorted(one["metric"].items())): float(one["value"][1]) for one in found}


def total(server: Server, metric: str) -> float:
    return last(server, metric).get((), 0.0)


def check_against_rows(server: Server, run_dir: Path) -> None:
    """Every count, by every label, in all phases; nothing ever fell."""
    reader = RunReader(run_dir)
    found = last(
        server,
        'cliffwatch_client_requests_total{job="port-0"}',
        "sum by (batch, cache, input_tokens, model, outcome, phase)",
    )
    octave = "(1 << floor(log2(input_tokens))::INTEGER)"
    sql = f"""SELECT batch::VARCHAR, cache, {octave} || '-' || ({octave} * 2 - 1), model, outcome, phase, count(*)
        FROM requests GROUP BY ALL"""  # noqa: S608
    assert found == {tuple(labels): count for *labels, count in reader.fetch(sql)}
    ((issued, inputs, outputs),) = reader.fetch(
        "SELECT count(*), coalesce(sum(server_input_tokens), 0), coalesce(sum(output_tokens), 0) FROM requests"
    )
    names = ("issued", "input_tokens", "output_tokens")
    shown = [total(server, f'cliffwatch_client_{name}_total{{job="port-0"}}') for name in names]
    assert shown == [issued, inputs, outputs]
    ((sent,),) = reader.fetch("SELECT count(sent_ns) FROM requests")
    assert total(server, 'cliffwatch_client_send_lag_seconds_count{job="port-0"}') == sent
    ((late,),) = reader.fetch("SELECT count(*) FROM requests WHERE dispatch_lag_s > 0.05")
    within = total(server, 'cliffwatch_client_send_lag_seconds_bucket{job="port-0",le="0.05"}')
    assert within == sent - late
    for name in ("requests_total", "output_tokens_total", "issued_total", "ttft_seconds_bucket", "e2e_seconds_count"):
        (falls,) = query(server, f"sum(resets(cliffwatch_client_{name}[10m]))")
        assert falls["value"][1] == "0", name


def check_attainment(server: Server, run_dir: Path, slo: Path) -> None:
    """At its edge a histogram gives the very requests that the judge found good and bad."""
    judged = judge(RunReader(run_dir), load_slo(slo))
    assert len(judged.objectives) == 7
    for one in judged.objectives:
        assert one.figure is not None
        name = f"cliffwatch_client_{METRIC[one.figure]}_seconds"
        own = 'job="port-0",phase="measured"'
        good = total(server, f'{name}_bucket{{{own},outcome="ok",le="{one.threshold_s:g}"}}')
        ok = total(server, f'{name}_count{{{own},outcome="ok"}}')
        failed = total(server, f'{name}_count{{{own},outcome!="ok"}}')
        failed_within = total(server, f'{name}_bucket{{{own},outcome!="ok",le="{one.threshold_s:g}"}}')
        assert (good, ok - good + failed - failed_within) == (one.good, one.bad), one.label
        assert 0 < one.good < one.n, f"{one.label}: a threshold that decides nothing"
    assert any(one.censored for one in judged.objectives)


def test_the_last_scrape_is_the_rows_and_its_attainment_the_judgement_s(engine: str, tmp_path: Path) -> None:
    slo, port, worker = tmp_path / "slo.yaml", free_port(), _free_pair()
    slo.write_text(SLO)
    with scraping(tmp_path, port, worker, worker + 1) as server:
        options = ("--slo", str(slo), "--workers", "2", "--metrics", str(port), "--worker-metrics", str(worker))
        run = load.run(WORKLOAD, engine, tmp_path, *options)
        assert run.code in {0, 1, 3}, run.output
        assert "up to 15 s for a last scrape" in run.output
        check_against_rows(server, run.folder)
        check_attainment(server, run.folder, slo)
        assert last(server, 'cliffwatch_client_workers{state="finished"}') == {(): 2}
        state = last(server, "cliffwatch_client_run_state", "max by (run, state)")
        assert (run.manifest.run_id, run.manifest.state.value) in state
        verdict = run.manifest.verdict
        assert verdict is not None
        assert last(server, f'cliffwatch_client_verdict{{verdict="{verdict.state}"}}') == {(): 1}
        # the workers' own rows, exact at once; they end with the run, so their last scrape may miss its last second
        by_worker = last(server, 'cliffwatch_client_issued_total{job!="port-0"}', "sum by (worker)")
        assert set(by_worker) == {("0",), ("1",)}
        assert 200 < sum(by_worker.values()) <= 400


def test_a_killed_worker_s_requests_stay_and_its_gauges_go(engine: str, tmp_path: Path) -> None:
    port = free_port()
    with scraping(tmp_path, port) as server:
        (tmp_path / "workload.yaml").write_text(yaml.safe_dump({**WORKLOAD, "timeouts": {}}))
        command = [sys.executable, "-m", "cliffwatch", "run", str(tmp_path / "workload.yaml"), "--target", engine]
        command += ["--out", str(tmp_path / "run"), "--workers", "2", "--metrics", str(port)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            seen = lambda: total(server, "cliffwatch_client_requests_total")  # noqa: E731
            assert wait_for(lambda: seen() > 60, timeout_s=60)
            _kill_a_worker(process.pid)
            assert process.wait(90) == 3  # what it had was lost
        manifest = read_manifest(tmp_path / "run")
        assert manifest.accounting is not None and manifest.accounting.lost > 10
        check_against_rows(server, tmp_path / "run")
        assert last(server, 'cliffwatch_client_workers{state="dead"}') == {(): 1}
        lost = {worker.shard for worker in manifest.workers if worker.state == "lost"}
        alive = query(server, "cliffwatch_client_worker_cpu_ratio")  # now, not ever
        assert not lost & {int(one["metric"]["worker"]) for one in alive}
        assert total(server, "cliffwatch_client_in_flight") == 0


def test_the_load_board_has_data_while_a_run_goes_on(engine: str, tmp_path: Path) -> None:
    port = free_port()
    workload = tmp_path / "workload.yaml"
    workload.write_text(yaml.safe_dump({**WORKLOAD, "requests": 4000, "timeouts": {}}))
    command = [sys.executable, "-m", "cliffwatch", "run", str(workload), "--target", engine, "--drain", "1s"]
    command += ["--out", str(tmp_path / "run"), "--metrics", str(port), "--metrics-linger", "0s", "--no-report"]
    with scraping(tmp_path, port) as server, subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            assert wait_for(lambda: total(server, "cliffwatch_client_requests_total") > 200, timeout_s=60)
            board = export.board_json(load_board())
            check_queries(server, board)
            check_variables(server, board)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130


def _kill_a_worker(parent: int) -> None:
    workers = [pid for pid in descendants(parent) if b"locustfile.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(min(workers), signal.SIGKILL)


def _free_pair() -> int:
    while True:
        first = free_port()
        try:
            _bind(first + 1)
        except OSError:
            continue
        return first


def _bind(port: int) -> None:
    socket.create_server(("127.0.0.1", port)).close()


def test_plain_locust_exposes_the_same_and_promtool_finds_nothing_wrong(engine: str, tmp_path: Path) -> None:
    (tmp_path / "workload.yaml").write_text(yaml.safe_dump({**WORKLOAD, "requests": 120}))
    port, texts = free_port(), [""]
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--host", engine]
    command += ["--cliffwatch-workload", str(tmp_path / "workload.yaml"), "--cliffwatch-out", str(tmp_path / "run")]
    command += ["--cliffwatch-metrics", str(port)]
    over = threading.Event()

    def scrape() -> None:
        while not over.wait(0.3):
            try:
                texts.append(get_text(f"http://127.0.0.1:{port}/metrics"))
            except OSError:
                continue

    scraper = threading.Thread(target=scrape)
    scraper.start()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL, check=False
        )
    finally:
        over.set()
        scraper.join()
    assert done.returncode in {0, 3}, done.stderr
    shown = [line for line in texts[-1].splitlines() if line.startswith("cliffwatch_client_requests_total")]
    assert sum(float(line.rpartition(" ")[2]) for line in shown) == 120
    checked = subprocess.run(
        [PROMETHEUS_BIN / "promtool", "check", "metrics"], input=texts[-1], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@pytest.mark.parametrize("part", [["--metrics"], ["--worker-metrics"]])
def test_a_taken_port_is_an_error_before_the_target_is_asked(part: list[str], engine: str, tmp_path: Path) -> None:
    taken = engine.rpartition(":")[2]
    run = load.run(WORKLOAD, "http://127.0.0.1:9", tmp_path, *part, taken)
    assert run.code == 2
    assert f"{part[0]}: cannot be listened on" in run.output and taken in run.output
    assert not run.folder.exists()


def test_plain_locust_does_not_begin_on_a_taken_port(engine: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--host", engine]
    command += ["--cliffwatch-metrics", engine.rpartition(":")[2]]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert "--cliffwatch-metrics: cannot be listened on" in done.stderr
