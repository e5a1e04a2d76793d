"""Figures read off a row are those that SQL computes, and a histogram of them gives the judgement's attainment."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cliffwatch.records.counted import LABELS, RowCounts
from cliffwatch.records.reader import RunReader
from cliffwatch.records.readings import READINGS, dispatch_lag_s
from cliffwatch.records.schema import Outcome, RequestRow
from cliffwatch.slo.edges import histogram_edges
from cliffwatch.slo.judge import judge
from cliffwatch.slo.spec import parse_slo
from tests.records.synthetic import make_row
from tests.slo.rows import run_of

MS = 1_000_000
THRESHOLDS_S = {
    "ttft": 0.050, "ttft, clock: sent": 0.045, "ttfa": 0.060, "ttfa, clock: sent": 0.05, "e2e": 0.200,
    "e2e, clock: sent": 0.19, "itl": 0.010, "tpot": 0.011, "ntpot": 0.02,
}  # fmt: skip
SLO = parse_slo(
    "name: test\nobjectives:\n"
    + "".join(f"  - {{sli: {sli}, threshold: {limit}s, target: 90%}}\n" for sli, limit in THRESHOLDS_S.items()),
    source="test",
)

# instants on and around the thresholds, since there mistakes show
after_ms = st.sampled_from([0, 1, 40, 45, 46, 50, 51, 60, 61, 100, 190, 191, 200, 201, 250])


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """A row's columns, as any outcome may leave them."""
    intended = 1000 * MS
    sent = draw(st.none() | st.sampled_from([0, 1, 5]).map(lambda ms: intended + ms * MS))
    first = None if sent is None else draw(st.none() | after_ms.map(lambda ms: sent + ms * MS))
    answer = None if first is None else draw(st.none() | after_ms.map(lambda ms: first + ms * MS))
    last = None if first is None else max(answer or 0, first + draw(after_ms) * MS)
    ended = max(last or 0, intended + draw(after_ms) * MS, sent or 0)
    outcome = draw(st.sampled_from(list(Outcome)))
    if outcome is Outcome.OK and first is None:
        outcome = Outcome.EMPTY
    return {
        "intended_ns": intended, "sent_ns": sent, "first_token_ns": first, "first_answer_ns": answer,
        "last_token_ns": last, "ended_ns": ended, "outcome": outcome, "batch": draw(st.sampled_from([1, 2])),
        "output_tokens": draw(st.none() | st.integers(0, 20)), "itl_s": draw(st.sampled_from([None, 0.01, 0.0101])),
        "connect_ns": draw(st.none() | st.just(MS)), "input_tokens": draw(st.sampled_from([1, 100, 128, 4000])),
        "chunk_gaps_us": None,
    }  # fmt: skip


rows = st.lists(shapes(), min_size=1, max_size=90).map(
    lambda many: [make_row(number, **one) for number, one in enumerate(many)]
)


def test_every_outcome_on_either_side_of_each_threshold(tmp_path: Path) -> None:
    """Tokens (first and last, in ms) and the end before, on and after the thresholds, by every outcome."""
    tokens = [(None, None), (45, 190), (50, 200), (51, 200), (50, 201)]
    ends = [45, 50, 51, 199, 200, 201]
    names = ("sent_ns", "first_token_ns", "first_answer_ns", "last_token_ns")
    many: list[RequestRow] = []
    for outcome, (first, last), end, sent in product(Outcome, tokens, ends, (0, 1, None)):
        if (outcome is Outcome.OK and first is None) or (sent is None and first is not None):
            continue
        at = [None if ms is None else (1000 + ms) * MS for ms in (sent, first, first, last)]
        ended = max((1000 + end) * MS, at[-1] or 0)
        changes = {"intended_ns": 1000 * MS, "ended_ns": ended, "outcome": outcome, **dict(zip(names, at, strict=True))}
        many.append(make_row(len(many), **changes))
    check_attainment(run_of(tmp_path / "run", many), many)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(rows)
def test_as_sql_reads_them_and_as_the_judge_counts_them(many: list[RequestRow]) -> None:
    with TemporaryDirectory() as folder:
        reader = run_of(Path(folder) / "run", many)
        figures = list(READINGS)
        sql = f"SELECT request_id, outcome, dispatch_lag_s, {', '.join(figures)} FROM requests"  # noqa: S608
        for request_id, outcome, lag, *exact in reader.fetch(sql):
            assert dispatch_lag_s(many[request_id]) == lag
            if outcome == Outcome.OK:
                assert [READINGS[figure].ok(many[request_id]) for figure in figures] == exact
        check_attainment(reader, many)


def check_attainment(reader: RunReader, many: list[RequestRow]) -> None:
    edges = histogram_edges(SLO, open_loop=True, engine_name=None)
    counts = RowCounts(edges)
    for row in many:
        counts.count(row)
    order, sets = list(edges), counts.counted().sets
    for one in judge(reader, SLO).objectives:
        assert one.figure is not None and one.threshold_s is not None
        n = order.index(one.figure)
        edge = edges[one.figure].index(one.threshold_s)
        within = {"ok": 0, "failed": 0}
        beyond = {"ok": 0, "failed": 0}
        for found in sets:
            kind = "ok" if found.labels[LABELS.index("outcome")] == "ok" else "failed"
            for bucket, count in found.histograms[n][1]:
                (within if bucket <= edge else beyond)[kind] += count
        assert (one.good, one.bad) == (within["ok"], beyond["ok"] + beyond["failed"]), one.label
