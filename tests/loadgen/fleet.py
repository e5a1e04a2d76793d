"""Runs over several worker processes, and a server that logs whom it served: for tests of their life and death."""

from __future__ import annotations

import re
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.loadgen.scripted import END, STREAM_HEAD, Served, answer_probe, event, serving, usage

_REQUEST_ID = re.compile(rb"^x-request-id: \S+-(\d+)\r$", re.MULTILINE | re.IGNORECASE)


@contextmanager
def logging_server(answer_s: float = 0.0) -> Iterator[Served]:
    """Streams two tokens after `answer_s`; its log is `Served.requests`."""

    def behave(sock: socket.socket, request: bytes) -> None:
        if not answer_probe(sock, request):
            time.sleep(answer_s)
            sock.sendall(STREAM_HEAD + event() + event(finish="length") + usage(5, 2) + END)

    with serving(behave) as served:
        yield served


def served_ids(served: Served) -> Counter[int]:
    """How often each request of the schedule came to the server."""
    matches = (_REQUEST_ID.search(request) for request in list(served.requests))
    return Counter(int(match[1]) for match in matches if match)


def write_workload(folder: Path, arrivals: str, **changes: object) -> Path:
    path = folder / "workload.yaml"
    fields = {
        "arrivals": arrivals,
        "input_tokens": "{kind: uniform, min: 8, max: 20}",
        "output_tokens": "{kind: fixed, value: 2}",
        "batch": "{sizes: [1]}",
        "endpoint": "completions",
        "cold_start": "{requests: 0}",
        **changes,
    }
    path.write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    return path
