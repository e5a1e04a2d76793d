"""The client's own error: the arithmetic, the server of known latency as a process, and the command."""

from __future__ import annotations

import http.client
import json

import pytest

from cliffwatch.records.calibration import Calibration, Error, Level
from cliffwatch.records.schema import Outcome
from cliffwatch.stream import DIALECTS
from cliffwatch.stream.response import StreamResult
from cliffwatch.workload.spec import Workload
from loadgen.calibration.measure import GAP_S, MOST_STREAMS, TOKENS, TTFT_S, _server, compare, reach, streams_of
from loadgen.connection import Transfer
from loadgen.delivery import Delivery

MS = 1_000_000


def delivery(**changes: object) -> Delivery:
    values = {"outcome": Outcome.OK, "first_token_ns": 153 * MS, "chunk_gaps_us": [20_400, 19_900], "chunks": 3}
    result = StreamResult(**{**values, **changes})  # type: ignore[arg-type]
    return Delivery(Transfer(300 * MS, sent_ns=101 * MS), result, 200, DIALECTS["completions"])


def test_measured_minus_written() -> None:
    """Sent at 101 and first token at 153 ms: 52 ms; the server read at 100.5 and wrote at 152: 51.5 ms."""
    instants = [100 * MS + MS // 2, 152 * MS, 172 * MS, 192 * MS]
    found = compare(delivery(), instants)
    assert found is not None
    assert found.ttft_s == pytest.approx(0.0005)
    assert found.gaps_s == pytest.approx([0.0004, -0.0001])


@pytest.mark.parametrize("instants", [[], [0, 1], [0, 1, 2, 3, 4]])
def test_chunks_that_came_together_or_not_at_all_are_no_sample(instants: list[int]) -> None:
    assert compare(delivery(), instants) is None


def test_a_stream_that_failed_is_no_sample() -> None:
    assert compare(delivery(outcome=Outcome.TRUNCATED), [0, 1, 2, 3]) is None


def test_streams_of_a_workers_part() -> None:
    def workload(**arrivals: object) -> Workload:
        return Workload.model_validate({"arrivals": arrivals, "duration": 60})

    assert streams_of(workload(kind="poisson", rate=50), 2) == 50
    assert streams_of(workload(kind="concurrency", users=30), 2) == 15
    assert streams_of(workload(kind="poisson", rate=0.1), 1) == 1


def test_the_server_keeps_its_schedule_and_tells_what_it_did() -> None:
    with _server() as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("POST", "/v1/completions", headers={"X-Request-Id": "a"})
        text = connection.getresponse().read().decode()
        connection.request("GET", "/")
        truth = json.loads(connection.getresponse().read())
        connection.request("GET", "/")
        assert json.loads(connection.getresponse().read()) == {}
        connection.close()
    assert text.count('"text"') == TOKENS
    assert text.endswith("data: [DONE]\n\n")
    read_ns, *written_ns = truth["a"]
    assert len(written_ns) == TOKENS
    for number, at_ns in enumerate(written_ns):  # never early
        assert at_ns - read_ns >= (TTFT_S + number * GAP_S) * 1e9 - 1


def test_a_load_beyond_what_can_be_measured_is_told() -> None:
    def found(streams: int, asked: int) -> Calibration:
        error = Error(n=900, p50_s=0.0002, p99_s=0.002, max_s=0.004)
        level = Level(
            name="load", streams=streams, asked_streams=asked, gap_s=GAP_S, ttft=error, itl=error, core_s_per_chunk=2e-5
        )
        return Calibration(levels=(level,), took_s=6.0)

    assert reach(found(200, 200)) == ()
    (note,) = reach(found(MOST_STREAMS, 600))
    assert "measured at 250 streams" in note and "may have 600 open" in note
