"""A whole run on several replicas behind one address: who answered is in the rows, who did not is said."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from cliffwatch.records.reader import RunReader
from tests.servers.engines import standin
from tests.servers.load import run

pytestmark = pytest.mark.integration

WORKLOAD = {
    "requests": 120,
    "arrivals": {"kind": "constant", "rate": 60},
    "input_tokens": {"kind": "fixed", "value": 300},
    "output_tokens": {"kind": "fixed", "value": 4},
    "batch": {"sizes": [1]},
    "cold_start": {"requests": 0},
}


@contextlib.contextmanager
def balanced_over(*ports: int) -> Iterator[int]:
    """A TCP balancer that gives each new connection to the next of these ports; its own port."""
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), []
    backends = cycle(ports)

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def accept(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, out = await asyncio.open_connection("127.0.0.1", next(backends))
        await asyncio.gather(pump(near, out), pump(far, back))

    async def serve() -> None:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        found.append(server.sockets[0].getsockname()[1])
        ready.set()

    loop.create_task(serve())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        assert ready.wait(10)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_who_answered_is_recorded_and_who_did_not_is_said(tmp_path: Path) -> None:
    with standin(tmp_path / "l", "--replica", "left") as left, standin(tmp_path / "r", "--replica", "right") as right:
        ports = [int(server.url.rpartition(":")[2]) for server in (left, right)]
        with balanced_over(*ports) as port:
            done = run(
                WORKLOAD, f"http://127.0.0.1:{port}", tmp_path, "--replica-header", "X-Served-By",
                "--replicas", "left,right,third", within_s=60,
            )  # fmt: skip
    assert done.code == 0, done.output
    seen = Counter(dict(RunReader(done.folder).fetch("SELECT replica, count(*) FROM requests GROUP BY 1")))
    assert set(seen) == {"left", "right"}
    assert seen.total() == 120
    assert done.manifest.verdict is not None
    found = next(one for one in done.manifest.verdict.checks if one.check == "unseen replicas")
    assert (found.value, found.n, found.state) == (1.0, 120, "DEGRADED")
    assert "1 of the replicas gave no answer (third)" in done.output
    assert "2 of 3 expected replicas answered (120 of 120 answers" in " ".join(done.output.split())
