"""What is refused before Prometheus is asked, and both sides where it tells little; an Asker stands for the network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from cliffwatch.errors import InputError, UnreachableError
from cliffwatch.records.manifest import RunState
from cliffwatch.records.reader import RunReader
from cliffwatch.slo.beside.compare import beside, read_match
from cliffwatch.slo.live.asks import Ask, Reply
from tests.records.synthetic import make_manifest, make_row, make_run
from tests.slo.rows import run_of

T0_S = 1_750_000_001.0


def answers(asks: Sequence[Ask], counts: Sequence[tuple[float, str]]) -> list[Reply]:
    """TTFT with these samples of its count, 50 ms each; no series of anything else."""
    sums = [(time_s, f"{float(count) * 0.05}") for time_s, count in counts]
    name = "vllm:time_to_first_token_seconds"
    ttft = [
        {"metric": {"__name__": f"{name}_count"}, "values": counts},
        {"metric": {"__name__": f"{name}_sum"}, "values": sums},
    ]
    return [
        json.dumps({"status": "success", "data": {"result": ttft if name in str(one.form) else []}}).encode()
        for one in asks
    ]


@pytest.fixture
def reader(tmp_path: Path) -> RunReader:
    run_of(tmp_path / "run", [make_row(number) for number in range(100)])
    return RunReader(tmp_path / "run")


def test_traffic_of_others_is_said(reader: RunReader) -> None:
    found = beside(reader, None, lambda asks: answers(asks, [(T0_S - 5, "1000"), (T0_S + 101, "1124")]))
    assert (found.served, found.ours, found.same, found.whole) == (124, 100, False, True)
    assert "the engine counted 124 first tokens, we 100: its means are of all" in found.notes
    ttft = found.figures[0]
    assert ttft.engine is not None and ttft.engine.mean_s == pytest.approx(0.05)
    parts = {part.name: part.mean_s for part in found.breakdowns[0].parts}
    assert parts["queue"] is None and parts["rest of the engine"] is None
    assert parts["network and client"] == pytest.approx(-5e-4 + 5e-4, abs=1e-9)  # ours is 50 ms too
    assert "how Prometheus's clock stands to this machine's is not known" in found.notes


def test_where_samples_begin_late_only_what_lies_within_is_compared(reader: RunReader) -> None:
    found = beside(reader, None, lambda asks: answers(asks, [(T0_S + 0.15, "10"), (T0_S + 101, "50")]))
    assert (found.whole, found.served, found.ours) == (False, 40, 0)
    assert found.across == 70  # request n was sent at n + 0.5 ms and ended at n + 120.6 ms
    assert found.figures[0].client is not None
    assert found.figures[0].client.mean_s is None and found.figures[0].difference_s is None
    assert any("no sample of before the run" in note for note in found.notes)


def test_without_an_answer_to_any_question_it_is_unreachable(reader: RunReader) -> None:
    with pytest.raises(UnreachableError):
        beside(reader, None, lambda asks: [UnreachableError("does not answer") for _ in asks])


@pytest.mark.parametrize("engine", [None, "", "another 1.0"])
def test_an_engine_that_the_catalog_has_not_is_refused(engine: str | None, tmp_path: Path) -> None:
    make_run(tmp_path / "run", 5, manifest=make_manifest(engine=engine))
    with pytest.raises(InputError, match="catalog"):
        beside(RunReader(tmp_path / "run"), None, lambda asks: answers(asks, []))


def test_a_run_that_goes_on_is_refused(tmp_path: Path) -> None:
    make_run(tmp_path / "run", 5, state=RunState.RUNNING)
    with pytest.raises(InputError, match="still goes on"):
        beside(RunReader(tmp_path / "run"), None, lambda asks: answers(asks, []))


def test_labels_are_read_and_anything_else_is_refused() -> None:
    assert read_match(["job=vllm", "instance=a=b"]) == {"job": "vllm", "instance": "a=b"}
    for text in ("job", "=x", "a-b=c", "__name__=up"):
        with pytest.raises(InputError, match="LABEL=VALUE"):
            read_match([text])
