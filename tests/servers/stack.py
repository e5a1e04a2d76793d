"""The stack's own configuration files on this machine, with the addresses of the containers replaced."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.servers.engines import ROOT

DEPLOY = ROOT / "deploy"
NOBODY = "127.0.0.1:9"  # a target that is down


def localized(folder: Path, into: Path, replacements: Mapping[str, str]) -> Path:
    """A copy of a folder of `deploy/` with texts replaced. Raises AssertionError for a text that occurs nowhere."""
    target = into / folder.name
    shutil.copytree(folder, target)
    unused = set(replacements)
    for path in sorted(target.rglob("*.yml")):
        text = path.read_text()
        for old, new in replacements.items():
            if old in text:
                unused.discard(old)
                text = text.replace(old, new)
        path.write_text(text)
    assert not unused, f"{unused} in no file of {folder}"
    return target


def prometheus_config(
    into: Path,
    *,
    engine: str,
    slo: str,
    alertmanager: str,
    prometheus: str,
    load: str = NOBODY,
    trtllm: str = NOBODY,
    router: str = NOBODY,
) -> Path:
    """`deploy/prometheus/prometheus.yml` on local addresses, scraping and evaluating each second."""
    replacements = {
        "engine:8000": engine,
        "engine-trtllm:8000": trtllm,
        "router:8000": router,
        "slo:8080": slo,
        "locust-master:9646": load,
        "alertmanager:9093": alertmanager,
        "localhost:9090": prometheus,
        "scrape_interval: 5s": "scrape_interval: 1s",
        "evaluation_interval: 15s": "evaluation_interval: 1s",
    }
    return localized(DEPLOY / "prometheus", into, replacements) / "prometheus.yml"


@contextmanager
def webhook() -> Iterator[tuple[str, list[bytes]]]:
    """An HTTP server that keeps every body posted to it: (its URL, the bodies so far)."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keeps the test's output free of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alert", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
