"""Traces as schedules: every row once and in order, cut, stretched, thinned and multiplied as asked."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from cliffwatch.errors import InputError
from cliffwatch.workload.preview import preview
from cliffwatch.workload.schedule import PlannedRequest, plan_blocks, schedule, schedule_hash
from cliffwatch.workload.spec import Workload, load_workload, with_changes
from tests.workload.statistics import Z, binomial_z

S = 1_000_000_000
Row = tuple[int, int, int, list[int] | None]  # ms, input, output, block ids
Make = Callable[..., Workload]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """`made(rows, **fields)`: the workload that replays these rows, by a file of Mooncake's format beside its own."""

    def make(rows: list[Row], *, name: str = "trace.jsonl", **fields: object) -> Workload:
        lines = [
            json.dumps(
                {"timestamp": at, "input_length": length, "output_length": answer}
                | ({} if ids is None else {"hash_ids": ids})
            )
            for at, length, answer, ids in rows
        ]
        (tmp_path / name).write_text("\n".join(lines))
        arrivals = {"kind": "trace", "file": name, **{key: fields.pop(key) for key in list(fields) if key in TRACE}}
        (tmp_path / "w.yaml").write_text(json.dumps({"arrivals": arrivals, **fields}))
        return load_workload(str(tmp_path / "w.yaml"))

    return make


TRACE = {"time_scale", "rate_scale", "start", "end", "block_tokens", "format"}


def sent(workload: Workload) -> list[tuple[float, int, int]]:
    return [(plan.intended_ns / S, plan.input_tokens, plan.output_tokens) for plan in schedule(workload)]


def test_all_fifteen_rows_are_sent_once_in_order_ties_together(made: Make) -> None:
    times = [0, 40, 40, 90, 200, 200, 200, 200, 310, 350, 400, 500, 600, 700, 2000]
    workload = made([(at, 100 + index, 10 + index, None) for index, at in enumerate(times)])
    assert sent(workload) == [(at / 1000, 100 + index, 10 + index) for index, at in enumerate(times)]
    assert (workload.open_loop, workload.batch.sizes, workload.planned_requests) == (True, (1,), None)
    plans = list(schedule(workload))
    assert [plan.request_id for plan in plans] == list(range(15))
    assert {(plan.endpoint, plan.cache, plan.batch) for plan in plans} == {("chat", "none", 1)}
    figures = preview(workload)
    assert (figures.n, figures.complete, figures.rate_asked, figures.duration_s) == (15, True, None, 2.0)


def test_shards_of_a_trace_merge_to_the_one_stream(made: Make) -> None:
    rows: list[Row] = [(at // 3 * 7, 600, 5, [at % 9, 10 + at]) for at in range(2000)]
    workload = made(rows, rate_scale=1.5)
    one = list(schedule(workload))
    for shards in (2, 3, 7):
        parts = chain(*(schedule(workload, shard=shard, shards=shards) for shard in range(shards)))
        assert sorted(parts, key=lambda plan: plan.request_id) == one
    for size in (1, 50, 5000):
        blocks = list(plan_blocks(workload, size=size))
        assert np.concatenate([block.intended_ns for block in blocks]).tolist() == [plan.intended_ns for plan in one]
        assert tuple(chain(*(block.prefix_blocks for block in blocks))) == tuple(plan.prefix_blocks for plan in one)


def test_a_slice_begins_at_its_own_zero_and_time_is_stretched(made: Make) -> None:
    rows: list[Row] = [(at * 1000, at + 1, 5, None) for at in range(100)]
    assert sent(made(rows, start=10, end="13s")) == [(0, 11, 5), (1, 12, 5), (2, 13, 5)]
    assert sent(made(rows, start=10, end=13, time_scale=0.25)) == [(0, 11, 5), (0.25, 12, 5), (0.5, 13, 5)]
    assert sent(made(rows, requests=2)) == [(0, 1, 5), (1, 2, 5)]
    assert sent(made(rows, duration="2s")) == [(0, 1, 5), (1, 2, 5)]


def test_a_rate_of_half_sends_half_by_chance(made: Make) -> None:
    rows: list[Row] = [(at, 7, 5, None) for at in range(20_000)]
    half = sent(made(rows, rate_scale=0.5))
    assert abs(binomial_z(len(half), 20_000, 0.5)) < Z
    assert len(set(half)) == len(half)


def test_copies_are_spread_to_the_next_time_and_share_no_blocks_with_the_first(made: Make) -> None:
    workload = made([(0, 600, 5, [1, 2]), (1000, 600, 5, [1, 3]), (1000, 9, 5, [4])], rate_scale=2)
    plans = list(schedule(workload))
    assert [plan.intended_ns / S for plan in plans] == [0, 0.5, 1, 1, 1, 1]
    first, copy, second, second_copy, *_ = (plan.prefix_blocks for plan in plans)
    assert (first, second) == ((1, 2), (1, 3))
    assert copy[0] == second_copy[0] != 1
    assert [plan.prefix_tokens for plan in plans] == [0, 0, 512, 512, 0, 0]
    counts = Counter(at for at, *_ in sent(made([(at * 1000, 7, 5, None) for at in range(9000)], rate_scale=2.25)))
    assert abs(binomial_z(sum(counts.values()) - 18_000, 9000, 0.25)) < Z


def test_prefixes_are_told_by_leading_blocks_that_came_before(made: Make) -> None:
    rows: list[Row] = [
        (0, 1300, 5, [0, 1, 2]),
        (0, 1300, 5, [0, 1, 3]),
        (1, 1000, 5, [0, 1]),
        (2, 1300, 5, [9, 1, 2]),
        (3, 1300, 5, [1 << 70, 5, 6]),
        (4, 1300, 5, [1 << 70, 5, 7]),
        (5, 400, 5, []),
    ]
    plans = list(schedule(made(rows)))
    assert [plan.prefix_tokens for plan in plans] == [0, 1024, 1000, 0, 0, 1024, 0]
    assert [plan.cache for plan in plans] == ["none", "prefix", "prefix", "none", "none", "prefix", "none"]
    assert {plan.prefix_group for plan in plans} == {None}
    assert [plan.prefix_block_tokens for plan in plans] == [512] * 6 + [0]
    figures = preview(made(rows))
    assert (figures.prefix_requests, figures.shared_input_tokens) == (3, 3048)


def test_a_traces_times_go_with_other_lengths_and_then_without_its_blocks(made: Make) -> None:
    workload = made([(0, 600, 5, [1, 2]), (9, 600, 5, [1, 2])], input_tokens={"kind": "fixed", "value": 64})
    plans = list(schedule(workload))
    assert [(plan.intended_ns, plan.input_tokens, plan.output_tokens) for plan in plans] == [
        (0, 64, 5),
        (9 * 10**6, 64, 5),
    ]
    assert {(plan.prefix_blocks, plan.cache) for plan in plans} == {((), "none")}
    assert len(workload.batch.sizes) > 1


def test_the_manifests_dump_reads_back_to_the_same_traffic(made: Make) -> None:
    workload = made([(0, 600, 5, [1, 2]), (9, 600, 5, [1, 2])])
    again = Workload.model_validate(workload.model_dump(mode="json"))
    assert list(schedule(again)) == list(schedule(workload))
    assert list(schedule(with_changes(workload, duration=5))) == list(schedule(workload))


def test_the_hash_knows_the_rows_but_not_where_the_file_is(made: Make) -> None:
    rows: list[Row] = [(0, 600, 5, [1, 2]), (9, 600, 5, [1, 2])]
    one = schedule_hash(made(rows))
    assert schedule_hash(made(rows, name="elsewhere.jsonl")) == one
    assert schedule_hash(made([*rows, (9, 1, 1, [])])) != one
    assert schedule_hash(made([(0, 600, 5, [1, 2]), (9, 600, 5, [1, 3])])) != one


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"batch": {"sizes": [1, 2]}}, "batch: would send a recorded prompt several times"),
        ({"start": 5}, "start: has no request in the slice"),
        ({"start": 5, "end": 5}, "arrivals.end: is not after start"),
        ({"time_scale": 0}, "arrivals.time_scale"),
        ({"format": "azure"}, "no column for input tokens and output tokens (format azure)"),
    ],
)
def test_what_a_trace_cannot_mean_is_refused(made: Make, fields: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as caught:
        list(schedule(made([(0, 600, 5, None)], **fields)))
    assert says in str(caught.value)


def test_a_load_over_thirty_days_is_refused_with_its_line(made: Make) -> None:
    rows: list[Row] = [(0, 1, 1, None), (31 * 86_400_000, 1, 1, None)]
    with pytest.raises(InputError, match=r"line 2: goes on for over 30 days; allowed: a slice"):
        list(schedule(made(rows)))
    assert len(list(schedule(made(rows, time_scale=0.5)))) == 2


def test_a_trace_that_is_none_is_refused_when_its_workload_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("arrivals: {kind: trace, file: t.csv}")
    with pytest.raises(InputError, match=r"t\.csv: cannot be read"):
        load_workload(str(tmp_path / "w.yaml"))
    (tmp_path / "t.csv").write_text("time,in,out\n0.5,1,2")
    with pytest.raises(InputError, match=r"t\.csv: line 1: has the columns of no known trace"):
        load_workload(str(tmp_path / "w.yaml"))


def test_recorded_lengths_need_a_recording() -> None:
    with pytest.raises(ValueError, match="arrivals are poisson"):
        Workload.model_validate(
            {"duration": 1, "arrivals": {"kind": "poisson", "rate": 1}, "output_tokens": {"kind": "trace"}}
        )


def replayed(tmp_path: Path, file: Path, **fields: object) -> tuple[list[PlannedRequest], Workload]:
    path = tmp_path / "w.yaml"
    path.write_text(json.dumps({"arrivals": {"kind": "trace", "file": str(file), **fields}}))
    workload = load_workload(str(path))
    return list(schedule(workload)), workload


@pytest.mark.parametrize(
    ("name", "rows", "span_s", "cv", "mean_in", "mean_out"),
    [("code", 8819, 3436, 13.2, 2048, 27.9), ("conv", 19_366, 3502, 1.09, 1155, 211)],
)
def test_azure_as_published(
    shared_dir: Path, tmp_path: Path, name: str, rows: int, span_s: int, cv: float, mean_in: int, mean_out: float
) -> None:
    plans, _ = replayed(tmp_path, shared_dir / "traces" / "azure-2023" / f"AzureLLMInferenceTrace_{name}.csv")
    times = np.array([plan.intended_ns for plan in plans])
    gaps = np.diff(times)
    assert len(plans) == rows
    assert times[-1] / S == pytest.approx(span_s, abs=1)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.01)
    assert np.mean([plan.input_tokens for plan in plans]) == pytest.approx(mean_in, abs=1)
    assert np.mean([plan.output_tokens for plan in plans]) == pytest.approx(mean_out, rel=0.005)


@pytest.mark.parametrize(
    ("name", "rows", "times", "seen"), [("conversation", 12_031, 1180, 0.37), ("synthetic", 3993, 3982, 0.64)]
)
def test_mooncake_as_published(shared_dir: Path, tmp_path: Path, name: str, rows: int, times: int, seen: float) -> None:
    file = shared_dir / "traces" / "mooncake-fast25" / f"{name}_trace.jsonl.gz"
    plans, workload = replayed(tmp_path, file)
    assert len(plans) == rows
    assert len({plan.intended_ns for plan in plans}) == times
    assert all(len(plan.prefix_blocks) == math.ceil(plan.input_tokens / 512) for plan in plans)
    known: set[int] = set()
    shared = 0
    for plan in plans:  # an account of its own: blocks that any earlier prompt had
        shared += len(known & set(plan.prefix_blocks))
        known.update(plan.prefix_blocks)
    blocks = sum(len(plan.prefix_blocks) for plan in plans)
    assert shared / blocks == pytest.approx(seen, abs=0.005)
    assert preview(workload).shared_input_tokens == pytest.approx(shared * 512, rel=0.02)


def test_measured_requests_as_recorded(shared_dir: Path, tmp_path: Path) -> None:
    file = shared_dir / "traces" / "vllm-measured" / "RTX4090_Llama-3.1-8B" / "requests.jsonl"
    plans, _ = replayed(tmp_path, file)
    recorded = [json.loads(line) for line in file.read_text().splitlines()]
    start = min(row["arrival_time"] for row in recorded)
    assert len(plans) == 300
    for plan, row in zip(plans, sorted(recorded, key=lambda row: row["arrival_time"]), strict=True):
        assert (plan.input_tokens, plan.output_tokens) == (row["input_toks"], row["output_toks"])
        assert plan.intended_ns / S == pytest.approx(row["arrival_time"] - start, abs=1e-6)


def test_a_shuffled_trace_is_the_trace(shared_dir: Path, tmp_path: Path) -> None:
    text = (shared_dir / "traces" / "azure-2023" / "AzureLLMInferenceTrace_code.csv").read_text()
    header, *lines = text.splitlines()
    (tmp_path / "sorted.csv").write_text("\n".join([header, *lines]))
    random.Random(1).shuffle(lines)
    (tmp_path / "shuffled.csv").write_text("\n".join([header, *lines]))
    plans, _ = replayed(tmp_path, tmp_path / "sorted.csv")
    assert replayed(tmp_path, tmp_path / "shuffled.csv")[0] == plans
