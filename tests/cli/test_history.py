"""A span of the past asked of a server that is busy, too small, partial or something else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from cliffwatch.cli import prometheus as asked
from cliffwatch.cli.history import fetch_history
from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.errors import InputError, UnreachableError
from cliffwatch.slo.backtest.history import Grid
from cliffwatch.slo.prometheus.events import Events

EVENTS = Events("events[{window}]", "bad[{window}]", "m")
GRID = Grid(1_790_000_000.0, 60.0, 1000, 0)
Form = dict[str, str]
Answering = Callable[[Form], tuple[int, bytes]]


def matrix(form: Form, **more: Any) -> tuple[int, bytes]:
    """One group whose value is the minute since the grid's start."""
    start, end, step = (float(form[key]) for key in ("start", "end", "step"))
    times = [start + at * step for at in range(round((end - start) / step) + 1)]
    values = [[at, str((at - GRID.start_s) / 60)] for at in times]
    data = {"resultType": "matrix", "result": [{"metric": {"instance": "a"}, "values": values}]}
    return 200, json.dumps({"status": "success", "data": data, **more}).encode()


@contextmanager
def server(answering: Answering) -> Iterator[str]:
    """An HTTP server on a free port of the loopback interface that answers each POST by its form."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, body = answering({key: values[0] for key, values in parse_qs(text).items()})
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


def fetched(answering: Answering, *, attempts: int = 1) -> Any:
    with server(answering) as url:
        return fetch_history(Prometheus(url, attempts=attempts), EVENTS, {300}, GRID, what="x")


def test_a_range_that_is_too_much_for_the_server_is_halved_until_it_is_not() -> None:
    def answering(form: Form) -> tuple[int, bytes]:
        if float(form["end"]) - float(form["start"]) > 300 * 60:
            error = {"status": "error", "error": "query processing would load too many samples into memory"}
            return 422, json.dumps(error).encode()
        return matrix(form)

    (history,) = fetched(answering).histories.values()
    assert history.rates["events", 300].tolist() == list(range(1000))
    assert history.rates["bad", 300].tolist() == list(range(1000))


def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "_WAIT_S", 0.0)
    left = [429, 503]

    def answering(form: Form) -> tuple[int, bytes]:
        return (left.pop(), b"") if left else matrix(form)

    assert fetched(answering, attempts=3).histories
    left.extend([503] * 8)
    with pytest.raises(UnreachableError, match="answered 503"):
        fetched(answering, attempts=3)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (200, b"<html>a login page</html>", "no answer of Prometheus"),
        (401, b"", "answered 401"),
        (404, b"<html>", "answered 404"),
        (400, b'{"status": "error", "error": "parse error"}', "answered 400 parse error"),
        (200, b'{"status": "success", "data": {"result": [{"metric": {}, "values": [[1, "x"]]}]}}', "no answer"),
    ],
)
def test_what_is_no_answer_is_said(status: int, body: bytes, says: str) -> None:
    with pytest.raises(UnreachableError, match=says) as caught:
        fetched(lambda _: (status, body))
    assert caught.value.exit_code == 4


def test_partial_answers_and_warnings_are_told() -> None:
    def answering(form: Form) -> tuple[int, bytes]:
        return matrix(form, warnings=["store eu-1 is away"], isPartial=True)

    warnings = fetched(answering).warnings
    assert warnings[0] == "store eu-1 is away"
    assert "partial" in warnings[1]


def test_no_series_is_no_history() -> None:
    empty = b'{"status": "success", "data": {"resultType": "matrix", "result": []}}'
    assert not fetched(lambda _: (200, empty)).histories


def test_more_than_fits_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cliffwatch.cli.history.MAX_CELLS", 1999)
    with pytest.raises(InputError, match="are more than fit"):
        fetched(matrix)
