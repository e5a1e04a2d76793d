"""A small server that speaks Prometheus's HTTP API from a script: for time-outs and answers hard to provoke."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

# path and query in, (status, body) out
Script = Callable[[str, str], tuple[int, bytes]]


@dataclass
class Scripted:
    """The server's address and what it was asked; `script` may be changed at any time, `delay_s` too."""

    script: Script
    url: str = ""
    delay_s: float = 0.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)


def vector(
    *series: tuple[dict[str, str], float | str], warnings: list[str] | None = None, ahead_s: float = 0.0
) -> bytes:
    """An instant query's answer, evaluated now by a clock that is so far ahead."""
    result = [{"metric": labels, "value": [time.time() + ahead_s, str(value)]} for labels, value in series]
    return answer({"resultType": "vector", "result": result}, warnings)


def answer(data: Any, warnings: list[str] | None = None) -> bytes:
    return json.dumps({"status": "success", "data": data, "warnings": warnings or []}).encode()


@contextlib.contextmanager
def serving(script: Script) -> Iterator[Scripted]:
    """Serve on the loopback until the block ends."""
    state = Scripted(script)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer("")

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            state.ends += [float(end) for end in form.get("end", ())]
            self._answer(form["query"][0])

        def _answer(self, query: str) -> None:
            state.asked.append((self.path, query))
            state.tokens.append(self.headers.get("Authorization"))
            time.sleep(state.delay_s)
            status, body = state.script(self.path, query)
            with contextlib.suppress(OSError):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
