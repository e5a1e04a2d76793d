"""`/metrics` over HTTP, beside the work that is measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gevent
from gevent.event import Event
from gevent.pywsgi import WSGIServer

from cliffwatch.errors import InputError
from loadgen.addresses import split_address
from loadgen.metrics.exposition import CONTENT_TYPE

LOOPBACK = "127.0.0.1"
_PIECE_CHARS = 8192  # some 30 us of a worker's time, until its requests have their turn again
_PAUSE_S = 0.0005  # not 0: gevent looks at no socket before all greenlets that only yield have run, for up to 5 ms
_CONNECTIONS = 16

Text = Callable[[], Iterator[str]]


def metrics_address(text: str, option: str) -> tuple[str, int]:
    """`PORT` on the loopback interface, or `HOST:PORT`. Raises InputError."""
    host, port = split_address(f"{LOOPBACK}:{text}" if text.isdigit() else text, option, default_port=-1)
    if port < 0:
        raise InputError("names no port", field=option, value=text, allowed="PORT or HOST:PORT")
    return host, port


class MetricsServer:
    """Answers scrapes with a text that is made anew each time.

    Attributes:
        url: where it is, with the port that was really taken.
        text: makes the text, piece by piece.
    """

    def __init__(self, host: str, port: int, text: Text, *, option: str) -> None:
        """Listen, and answer from now on. Raises InputError, naming the option, where the address cannot be had."""
        self.text = text
        self._last_scrape_s: dict[str, float] = {}
        self._scraped = Event()
        self._lingering = False
        self._server = WSGIServer((host, port), self._answer, spawn=_CONNECTIONS, log=None)
        try:
            self._server.start()
        except OSError as error:
            message = f"cannot be listened on: {(error.strerror or str(error)).partition(': (')[0]}"
            raise InputError(message, field=option, value=f"{host}:{port}", allowed="a free address") from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_port}/metrics"

    def linger(self, limit_s: float) -> None:
        """Stay until everybody who has scraped before has done so once more, at most so long."""
        begun_s = time.monotonic()
        self._lingering = True
        if self._last_scrape_s and limit_s > 0:
            print(f"cliffwatch: metrics stay up to {limit_s:g} s for a last scrape", file=sys.stderr)  # noqa: T201
        while any(at_s < begun_s for at_s in self._last_scrape_s.values()):
            left_s = begun_s + limit_s - time.monotonic()
            if left_s <= 0:
                return
            self._scraped.clear()
            self._scraped.wait(left_s)

    def release(self) -> None:
        """End a `linger` now, where there is one."""
        if self._lingering:
            self._last_scrape_s.clear()
            self._scraped.set()

    def close(self) -> None:
        self.release()
        self._server.stop(timeout=1)

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        plain = [("Content-Type", "text/plain; charset=utf-8")]
        if environ["PATH_INFO"] != "/metrics":
            start_response("404 Not Found", plain)
            return [b"metrics are at /metrics\n"]
        if environ["REQUEST_METHOD"] != "GET":
            start_response("405 Method Not Allowed", [*plain, ("Allow", "GET")])
            return [b"GET only\n"]
        start_response("200 OK", [("Content-Type", CONTENT_TYPE)])
        return self._pieces(environ["REMOTE_ADDR"])

    def _pieces(self, scraper: str) -> Iterator[bytes]:
        begun_s = time.monotonic()
        pieces: list[str] = []
        size = 0
        for piece in self.text():
            pieces.append(piece)
            size += len(piece)
            if size >= _PIECE_CHARS:
                yield _encoded(pieces)
                gevent.sleep(_PAUSE_S)
                pieces, size = [], 0
        yield _encoded(pieces)
        self._last_scrape_s[scraper] = begun_s
        self._scraped.set()


def _encoded(pieces: list[str]) -> bytes:
    return "".join(pieces).encode("utf-8", "replace")  # a server may give its model a name that no UTF-8 can hold
