"""Files of other tools' measurements: what is read, what is one request, what is refused, and with which line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cliffwatch.errors import InputError, RunError
from cliffwatch.records.foreign import read_foreign
from cliffwatch.records.importing import STATED, import_run
from cliffwatch.records.manifest import RunState
from cliffwatch.records.reader import RunReader

LINES: list[dict[str, Any]] = [
    # Two sequences of one batch, sent at 100 s; then a request alone, and one that failed.
    {"wall": 100.0, "seq": 0, "batch": 2, "input_tokens": 512, "output_tokens": 4, "ttft": 0.25, "itl_mean": 0.01,
     "e2e": 0.28, "request_e2e": 0.5, "cache": "none", "status": 200, "error": None},
    {"wall": 100.0, "seq": 1, "batch": 2, "input_tokens": 512, "output_tokens": 4, "ttft": 0.4, "itl_mean": 0.03,
     "e2e": 0.49, "request_e2e": 0.5, "cache": "none", "status": 200, "error": None},
    {"wall": 101.5, "seq": 0, "batch": 1, "input_tokens": 1024, "output_tokens": 2, "ttft": 0.1, "itl_mean": 0.02,
     "e2e": 0.12, "request_e2e": 0.12, "cache": "none", "status": 200, "error": None},
    {"wall": 102.0, "seq": 0, "batch": 1, "input_tokens": 1024, "output_tokens": 0, "ttft": None, "itl_mean": None,
     "e2e": None, "request_e2e": None, "cache": "none", "status": 429, "error": "busy"},
]  # fmt: skip
QUERY = (
    "SELECT batch, input_tokens, outcome, ttft_s, e2e_s, itl_s, output_tokens, intended_ns, prompt_ttfts_us"
    " FROM requests ORDER BY request_id"
)
EXPECTED = [
    (2, 512, "ok", 0.4, 0.49, 0.02, 8, 0, [250_000, 400_000]),
    (1, 1024, "ok", 0.1, 0.12, 0.02, 2, 1_500_000_000, [100_000]),
    (1, 1024, "http_429", None, None, None, 0, 2_000_000_000, None),
]


def jsonl(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def rows(path: Path, query: str = QUERY) -> list[tuple[Any, ...]]:
    with read_foreign(path).session() as cursor:
        return cursor.execute(query).fetchall()


def close(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> bool:
    return len(found) == len(wanted) and all(
        mine == (pytest.approx(right) if isinstance(right, float) else right)
        for one, other in zip(found, wanted, strict=True)
        for mine, right in zip(one, other, strict=True)
        if right is not None or mine is not None
    )


def test_sequences_of_a_batch_are_one_request(tmp_path: Path) -> None:
    found = rows(jsonl(tmp_path / "a.jsonl", LINES))
    found[2] = (*found[2][:-1], None)  # a list of nothing known
    assert close(found, EXPECTED)


def test_every_kind_of_file_says_the_same(tmp_path: Path) -> None:
    as_json = jsonl(tmp_path / "a.jsonl", LINES)
    zipped = tmp_path / "b.jsonl.gz"
    zipped.write_bytes(gzip.compress(as_json.read_bytes()))
    parquet = tmp_path / "c.parquet"
    pq.write_table(pa.Table.from_pylist(LINES), parquet)
    names = list(LINES[0])
    table = [names, *(["" if line[name] is None else str(line[name]) for name in names] for line in LINES)]
    comma = tmp_path / "d.csv"
    comma.write_text("\n".join(",".join(each) for each in table))
    first = rows(as_json)
    assert all(rows(path) == first for path in (zipped, parquet, comma))


def test_milliseconds_are_told_by_the_name(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"prompt_tokens": 10, "ttft_ms": 250, "tpot_ms": 12.5}])
    assert rows(path, "SELECT input_tokens, ttft_s, itl_s, batch, cache, e2e_s FROM requests") == [
        (10, 0.25, 0.0125, 1, "unknown", None)
    ]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    found = read_foreign(jsonl(tmp_path / "a.jsonl", [{"input_tokens": 10, "ttft": 0.25, "sched_lag": None}]))
    assert {"e2e", "itl", "lag", "sent", "batch", "cache"} <= set(found.missing)
    assert found.columns == {"ttft": "ttft", "input_tokens": "input_tokens"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"input_tokens": 5, "ttft": 1}\n{"input_tokens": 5, "ttft": -1}\n', "line 2"),
        ("a.jsonl", '{"input_tokens": 5, "ttft": 250000}\n', "0 to 86400 s"),
        ("a.jsonl", '{"input_tokens": 0, "ttft": 1}\n', "input_tokens"),
        ("a.jsonl", '{"input_tokens": null, "ttft": 1}\n{"input_tokens": 4, "ttft": 1}\n', "line 1"),
        ("a.jsonl", '{"input_tokens": 5.5, "ttft": 1}\n', "whole"),
        ("a.jsonl", '{"input_tokens": 5}\n', "no column of a latency"),
        ("a.jsonl", '{"ttft": 5}\n', "no column of input lengths"),
        ("a.jsonl", '{"input_tokens": "many", "ttft": 1}\n', "not a column of numbers"),
        ("a.jsonl", '{"input_tokens": 5, "ttft": 1}\nnot json\n', "cannot be read as jsonl"),
        ("a.jsonl", "", "no column"),
        ("a.csv", "input_tokens,ttft\n5,1\n5,-2\n", "line 3"),
        ("a.parquet", "no parquet", "cannot be read as parquet"),
        ("a.xlsx", "", "allowed: .jsonl"),
        ("jsonl", "", "of no known kind"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_foreign(path)
    assert said in str(refused.value)
    assert name in str(refused.value)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no file"):
        read_foreign(tmp_path / "absent.jsonl")


def test_a_name_with_signs_of_patterns_is_taken_as_it_is(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "it's [a]*.jsonl", LINES)
    (tmp_path / "it's a.jsonl").write_text("nonsense")
    assert read_foreign(path).lines == 4


def test_an_imported_run_is_a_run(tmp_path: Path) -> None:
    manifest, _ = import_run(jsonl(tmp_path / "a.jsonl", LINES), tmp_path / "run", name="a", engine="vllm")
    assert manifest.state is RunState.COMPLETE
    assert manifest.accounting is not None
    assert (manifest.accounting.issued, manifest.accounting.ok, manifest.accounting.failed) == (3, 2, 1)
    assert manifest.t0_unix_ns == 100_000_000_000
    assert manifest.warnings[0] == STATED
    found = RunReader(tmp_path / "run").fetch(QUERY)
    found[2] = (*found[2][:-1], None)
    assert close(found, EXPECTED)
    with pytest.raises(RunError, match="already holds a run"):
        import_run(tmp_path / "a.jsonl", tmp_path / "run", name="a", engine=None)
