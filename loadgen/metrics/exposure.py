"""What `cliffwatch run` shows of a run: its own endpoint, and one of each worker on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from cliffwatch.errors import InputError
from loadgen.addresses import check_free
from loadgen.coordinator import Coordinator
from loadgen.metrics.requests import build_info
from loadgen.metrics.run import master_text
from loadgen.metrics.server import MetricsServer, metrics_address
from loadgen.origin import authority

_OPTION, _WORKER_OPTION = "--metrics", "--worker-metrics"


class Exposure:
    """Endpoints of one run; none where none were asked for.

    Attributes:
        workers: the address of each local worker's endpoint.
    """

    def __init__(
        self, metrics: str | None, linger_s: float, worker_metrics: str, workers: int, place: tuple[str, int]
    ) -> None:
        """Take the addresses, before any load; `place` is where workers join. Raises InputError where one cannot be
        had, or is asked for twice."""
        own = [] if metrics is None else [metrics_address(metrics, _OPTION)]
        self.workers = worker_addresses(
            worker_metrics, workers, [("--bind", *place), *((_OPTION, *one) for one in own)]
        )
        self._linger_s = linger_s
        self._server: MetricsServer | None = None
        for address in own:
            self._server = MetricsServer(*address, build_info, option=_OPTION)
            print(f"cliffwatch: metrics at {self._server.url}", file=sys.stderr)  # noqa: T201

    def show(self, coordinator: Callable[[], Coordinator | None]) -> None:
        """From now on, the run that this gives."""

        def text() -> Iterator[str]:
            return master_text(coordinator())

        if self._server is not None:
            self._server.text = text

    def linger(self) -> None:
        """Leave time for a last scrape of what the run came to."""
        if self._server is not None:
            self._server.linger(self._linger_s)

    def release(self) -> None:
        """Linger no longer."""
        if self._server is not None:
            self._server.release()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


def worker_addresses(text: str, workers: int, others: Sequence[tuple[str, str, int]] = ()) -> list[str]:
    """HOST:PORT for each local worker, from the first one's; none for an empty text.

    Raises InputError for an address that is none, that leaves too few ports, or where one of them or of `others`
    (option, host, port) is taken.
    """
    host, ports = "", range(0)
    if text:
        host, first = metrics_address(text, _WORKER_OPTION)
        if not 0 < first <= 65536 - workers:
            allowed = f"a port from 1 to {65536 - workers}, for {workers} workers"
            raise InputError("leaves no port for each worker", field=_WORKER_OPTION, value=text, allowed=allowed)
        ports = range(first, first + workers)
    check_free(*others, *((_WORKER_OPTION, host, port) for port in ports))
    return [authority(host, port) for port in ports]
