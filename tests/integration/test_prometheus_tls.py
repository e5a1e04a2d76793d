"""A real Prometheus behind TLS, with a certificate of an authority of one's own: refused with the mend, and trusted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
import yaml
from starlette.testclient import TestClient

from cliffwatch.cli.prometheus import prometheus as server_at
from cliffwatch.slo.live.watched import load_watched
from services.slo.app import create_app
from services.slo.store import RunStore
from services.slo.watcher import Watcher
from tests.servers.monitoring import PROMETHEUS_BIN
from tests.servers.processes import free_port, running

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

SLO = """\
name: chat
objectives: [{sli: ttft, threshold: 2.5s, target: 99%}]
watch: {engine: vllm, match: {job: vllm}}
"""


@dataclass(frozen=True)
class Secure:
    """The server's address, the file of its authority, an SLO file."""

    url: str
    ca: Path
    slo: Path


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    web = {"tls_server_config": {"cert_file": "server.pem", "key_file": "server.pem"}}
    (folder / "web.yml").write_text(yaml.safe_dump(web))
    (folder / "prometheus.yml").write_text("{}")
    (folder / "slo.yaml").write_text(SLO)
    address = f"127.0.0.1:{free_port()}"
    command = [
        PROMETHEUS_BIN / "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--web.config.file={folder / 'web.yml'}",
        f"--web.listen-address={address}",
        f"--storage.tsdb.path={folder / 'data'}",
    ]
    url = f"https://{address}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))  # for the look at whether it is ready
        with running(command, url=url, health="/-/ready", log=folder / "prometheus.log", ready_within_s=30):
            patch.undo()
            yield Secure(url, folder / "ca.pem", folder / "slo.yaml")


def ask(secure: Secure, *options: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cliffwatch", *map(str, options), "--prometheus", secure.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_an_authority_that_is_not_trusted_is_refused_with_the_mend(secure: Secure) -> None:
    done = ask(secure, "slo", "status", secure.slo)
    assert done.returncode == 4
    assert "certificate that is not trusted" in done.stderr
    assert "--prometheus-ca-file" in done.stderr


def test_it_is_trusted_where_it_is_named(secure: Secure) -> None:
    done = ask(secure, "slo", "status", secure.slo, "--json", "--prometheus-ca-file", secure.ca)
    assert done.returncode == 0, done.stderr
    assert '"no_data"' in done.stdout


def test_a_file_without_certificates_is_wrong_input(secure: Secure) -> None:
    done = ask(secure, "surface", "grid", "--prometheus-ca-file", secure.slo)
    assert done.returncode == 2
    assert "holds no certificates of authorities" in done.stderr


def test_the_service_asks_it_too_and_says_why_where_it_cannot(secure: Secure, tmp_path: Path) -> None:
    files = load_watched([secure.slo])
    for ca, known in ((secure.ca, True), (None, False)):
        watcher = Watcher(files, server_at(secure.url, ca_file=ca))
        with TestClient(create_app(RunStore(tmp_path), watcher=watcher)) as client:
            source = client.get("/v1/slos").json()["source"]
        assert (source["problem"] is None) is known
        assert known or "not trusted" in source["problem"]
