"""Trace files: what is read, what is set right and said, what is refused and where."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.traces import reader
from cliffwatch.workload.traces.reader import open_rows
from cliffwatch.workload.traces.rows import Repairs

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
S = 1_000_000_000


class Read:
    """One trace file, read whole: (time in ns, input, output, blocks) of each row, and the repairs by their text."""

    def __init__(self, path: Path, content: str | bytes, **options: object) -> None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        spec = TraceArrivals.model_validate({"kind": "trace", "file": str(path), **options})
        source, found = open_rows(spec), Repairs()
        self.format = source.format.name
        self.rows = [row[:4] for row in source.rows(found, np.random.default_rng(1))]
        self.repairs = {repair.what: (repair.count, repair.first_line) for repair in found}

    @property
    def plain(self) -> list[tuple[float, int, int]]:
        return [(time / S, tokens_in, tokens_out) for time, tokens_in, tokens_out, _ in self.rows]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace"


def refusal(path: Path, content: str | bytes, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        Read(path, content, **options)
    assert str(path) in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


def test_azure_with_crlf_seven_digits_and_no_newline_at_the_end(file: Path) -> None:
    text = f"{AZURE}\r\n2023-11-16 18:17:03.9799601,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8"
    read = Read(file, text)
    assert (read.format, read.repairs) == ("azure", {})
    assert read.rows == [(0, 4808, 10, ()), (51_999_900, 3180, 8, ())]


def test_azure_of_a_later_year_has_a_zone_and_six_digits(file: Path) -> None:
    read = Read(file, f"{AZURE}\n2024-05-10 00:00:00.009930+00:00,1,2\n2024-05-10 02:00:00.009931+02:00,3,4\n")
    assert read.rows == [(0, 1, 2, ()), (1000, 3, 4, ())]


def test_a_byte_order_mark_is_no_part_of_the_first_name(file: Path) -> None:
    read = Read(file, "\ufeff" + f"{BURST}\n5,ChatGPT,10,20,30,API log\n".replace("log\n", "log\n7,G,1,2,3,x\n"))
    assert read.plain == [(0, 10, 20), (2, 1, 2)]
    assert read.repairs == {"the file began with a byte order mark": (1, None)}


def test_burstgpt_by_names_with_two_columns_between_and_failures_left_out(file: Path) -> None:
    text = (
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        '5.5,s1,0.4,ChatGPT,472,18,490,"Conversation log"\n45,,1,GPT-4,1087,230,1317,API log\n'
        "118,,1,GPT-4,417,0,417,API log\n120,,1,GPT-4,0,0,0,API log\n"
    )
    read = Read(file, text)
    assert (read.format, read.plain) == ("burstgpt", [(0, 472, 18), (39.5, 1087, 230)])
    assert list(read.repairs.values()) == [(2, 4)]


def test_mooncake_counts_milliseconds_and_keeps_ties_and_blocks(file: Path) -> None:
    rows = [(0, 600, [0, 1]), (0, 1024, [0, 2]), (3000, 100, [3]), (3000, 5, [4])]
    lines = [
        json.dumps({"timestamp": at, "input_length": length, "output_length": 7, "hash_ids": ids})
        for at, length, ids in rows
    ]
    read = Read(file, "\n".join(lines))
    assert (read.format, read.repairs) == ("mooncake", {})
    assert read.rows == [(0, 600, 7, (0, 1)), (0, 1024, 7, (0, 2)), (3 * S, 100, 7, (3,)), (3 * S, 5, 7, (4,))]


def test_bailian_counts_seconds_and_blocks_of_sixteen(file: Path) -> None:
    row = {"chat_id": 1, "timestamp": 1.5, "input_length": 30, "output_length": 7, "hash_ids": [1, 2], "turn": 1}
    read = Read(file, json.dumps(row) + "\n" + json.dumps({**row, "timestamp": 2.75}))
    assert (read.format, read.rows[1]) == ("bailian", (1_250_000_000, 30, 7, (1, 2)))


def test_blocks_may_begin_in_a_later_object_and_are_no_column_of_a_csv(file: Path) -> None:
    plain = {"timestamp": 0, "input_length": 600, "output_length": 1}
    read = Read(file, "\n".join(map(json.dumps, [plain, {**plain, "hash_ids": ["a", "b"]}])))
    assert [len(row[3]) for row in read.rows] == [0, 2]
    assert Read(file, "time_s,input_tokens,output_tokens,hash_ids\n0.5,600,1,[1 2]").rows == [(0, 600, 1, ())]


def test_compressed_files_are_read_as_they_are(file: Path) -> None:
    assert Read(file, gzip.compress(f"{AZURE}\n2023-11-16 18:17:03,1,2".encode())).plain == [(0, 1, 2)]
    assert "is damaged gzip" in refusal(file, gzip.compress(f"{AZURE}\n{'2023-11-16 18:17:03,1,2'}\n".encode())[:-9])


def test_columns_are_found_by_usual_names_or_by_those_given(file: Path) -> None:
    assert Read(file, "arrival_time,output_toks,input_toks\n1787267980.5,3,2\n1787267981.5,5,4").plain == [
        (0, 2, 3),
        (1, 4, 5),
    ]
    named = {"columns": {"time": "t", "input": "in", "output": "out"}, "time_unit": "ms"}
    assert Read(file, "t;in;out\n100;1;2\n250;3;4", **named).plain == [(0, 1, 2), (0.15, 3, 4)]
    assert Read(file, '{"t": 100, "in": 1, "out": 2}\n{"out": 4, "in": 3, "t": 250}', **named).plain[1] == (0.15, 3, 4)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ((1_700_000_000, 1_700_000_060), 60),
        ((1_700_000_000_000, 1_700_000_060_000), 60),
        ((1_700_000_000_000_000, 1_700_000_060_000_000), 60),
        ((1_700_000_000_000_000_000, 1_700_000_060_000_000_000), 60),
        ((0.25, 60.5), 60.25),
    ],
)
def test_units_that_are_certain_need_not_be_told(file: Path, times: tuple[float, float], seconds: float) -> None:
    text = f"timestamp,input_tokens,output_tokens\n{times[0]},1,1\n{times[1]},1,1"
    assert Read(file, text).rows[1][0] == round(seconds * S)


@pytest.mark.parametrize(("name", "seconds"), [("time_s", 60), ("time_ms", 0.06), ("Time (ms)", 0.06), ("t_us", 6e-5)])
def test_a_columns_name_may_tell_the_unit(file: Path, name: str, seconds: float) -> None:
    read = Read(file, f"{name},input_tokens,output_tokens\n0,1,1\n60,1,1", columns={"time": name})
    assert read.rows[1][0] == round(seconds * S)


def test_seconds_or_milliseconds_is_asked_where_it_is_open(file: Path) -> None:
    text = "time,input_tokens,output_tokens\n0,1,1\n60,1,1"
    assert refusal(file, text).startswith("time: may be seconds or milliseconds")
    assert Read(file, text, time_unit="s").rows[1][0] == 60 * S
    mooncake = '{"timestamp": 27.5, "input_length": 1, "output_length": 1}'
    assert "fractions where this format counts whole milliseconds" in refusal(file, mooncake)


def test_a_format_in_another_unit_than_its_own_is_found_out(file: Path) -> None:
    read = Read(file, f"{BURST}\n1700000000000,m,1,1,2,x\n1700000001000,m,1,1,2,x")
    assert read.rows[1][0] == S
    assert read.repairs == {"times are Unix times in ms, not in s as this format has them": (1, None)}


def test_milliseconds_of_a_month_are_no_unix_seconds(file: Path) -> None:
    rows = [{"timestamp": at, "input_length": 1, "output_length": 1} for at in (1_500_000_000, 1_500_000_001)]
    assert Read(file, "\n".join(map(json.dumps, rows))).rows[1][0] == 1_000_000
    text = "time,input_tokens,output_tokens\n0.0,1,1\n2000000000.5,1,1"
    assert Read(file, text).rows[1][0] == 2_000_000_000_500_000_000


def test_rows_out_of_order_are_sorted_ties_kept_and_said(file: Path) -> None:
    read = Read(file, f"{BURST}\n5,m,1,1,2,x\n9,m,2,1,2,x\n4,m,3,1,2,x\n9,m,4,1,2,x\n4,m,5,1,2,x")
    assert read.plain == [(0, 3, 1), (0, 5, 1), (1, 1, 1), (5, 2, 1), (5, 4, 1)]
    assert read.repairs == {"a row out of order is put at its time": (2, 4)}


def test_a_file_too_far_out_of_order_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "WINDOW", 10)
    lines = [f"{at},m,1,1,2,x" for at in (*range(100, 130), 5)]
    assert refusal(file, "\n".join([BURST, *lines])).startswith("line 32: is too far out of order")


def test_a_missing_time_between_equal_ones_is_certain(file: Path) -> None:
    read = Read(file, f"{BURST}\n5,m,1,1,2,x\n,m,2,1,2,x\n ,m,3,1,2,x\n5,m,4,1,2,x")
    assert read.plain == [(0, 1, 1), (0, 2, 1), (0, 3, 1), (0, 4, 1)]
    assert list(read.repairs.values()) == [(2, 3)]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("5,m,1,1,2,x\n,m,2,1,2,x\n6,m,3,1,2,x", "line 3: has no time"),
        (",m,2,1,2,x\n6,m,3,1,2,x", "line 2: has no time"),
        ("5,m,1,1,2,x\n,m,2,1,2,x", "line 3: has no time"),
        ("5,m,1,1,2,x\n-6,m,1,1,2,x", "line 3: Timestamp is no time; got '-6'"),
        ("5,m,1,1,2,x\nnan,m,1,1,2,x", "line 3: Timestamp is no time"),
        ("5,m,1,1,2,x\n1e99999,m,1,1,2,x", "line 3: Timestamp is no time"),
        ("5,m,1,1,2,x\nnoon,m,1,1,2,x", "line 3: Timestamp is no time; got 'noon'"),
        ("5,m,-1,1,2,x", "line 2: input length is out of range"),
        ("5,m,1,-1,2,x", "line 2: output length is out of range"),
        ("5,m,99999999999,1,2,x", "line 2: input length is out of range"),
        ("5,m,9999999999999999999999999,1,2,x", "line 2: input length is not a number of tokens"),
        ("5,m,1.5,1,2,x", "line 2: input length is not a number of tokens"),
        ("5,m,,1,2,x", "line 2: input length is missing"),
        ("5,m,many,1,2,x", "line 2: input length is not a number of tokens"),
        ("5,m,1e999999999,1,2,x", "line 2: input length is not a number of tokens"),
        ("5,m,0,1,2,x", "line 2: input length is 0"),
        ("5,m,1,1,2,x\n6,m,1", "line 3: has 3 fields; allowed: 6"),
        ("5,m,1,1,2,x\n6,m,1,1,2,x,9", "line 3: has 7 fields"),
        ('5,m,1,1,2,x\n6,"m,1,1,2,x', "line 3: is not CSV"),
        ("5,m,1,1,2,x\n6,m,1,1,2,\x00\n" + "y" * (1 << 21), "line"),
        ("", "holds no request"),
    ],
)
def test_what_is_not_certain_is_refused_with_its_line(file: Path, rows: str, says: str) -> None:
    assert refusal(file, f"{BURST}\n{rows}").startswith(says)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"timestamp": 1, "input_length": 5}', "output length is missing"),
        ('{"timestamp": true, "input_length": 5, "output_length": 1}', "timestamp is no time"),
        ('{"timestamp": 1, "input_length": true, "output_length": 1}', "input length is not a number of tokens"),
        ('{"timestamp": 1, "input_length": 5, "output_length": 1', "is not JSON"),
        ("[1, 2]", "is not a JSON object"),
        ("[" * 100_000, "is not JSON"),
        ('{"timestamp": 1, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}', "2 blocks of 512 tokens"),
        ('{"timestamp": 1, "input_length": 512, "output_length": 1, "hash_ids": [1.5]}', "block ids are no list"),
        ('{"timestamp": 1, "input_length": 512, "output_length": 1, "hash_ids": 7}', "block ids are no list"),
    ],
)
def test_json_lines_are_refused_likewise(file: Path, line: str, says: str) -> None:
    first = '{"timestamp": 0, "input_length": 5, "output_length": 1}\n\n'
    assert refusal(file, first + line).startswith(f"line 3: {says}")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"x" * (1 << 21), "line 1: is too long; allowed: 1048576 bytes"),
        (f"{AZURE}\n".encode("utf-16"), "line 1: is UTF-16"),
        (f"{AZURE}\n2023-11-16 18:17:03,1,\xe9".encode("latin-1"), "line 2: is not UTF-8"),
        (b"a,a,b\n1,2,3", "line 1: names a column twice"),
        (f"{AZURE}\n2023-02-30 18:17:03,1,1".encode(), "line 2: TIMESTAMP is no time"),
        (b"time,in,out\n0.5,1,2", "line 1: has the columns of no known trace; got 'time, in, out'; allowed: azure ("),
    ],
)
def test_files_that_are_none_are_refused(file: Path, content: bytes, says: str) -> None:
    assert refusal(file, content).startswith(says)


def test_a_named_format_without_its_columns_says_what_it_expects_and_found(file: Path) -> None:
    said = refusal(file, "time,in,out\n0.5,1,2", format="azure")
    assert said.startswith("line 1: has no column for time and input tokens and output tokens (format azure)")
    assert "got 'time, in, out'; allowed: time: TIMESTAMP; input tokens: ContextTokens" in said


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none: cannot be read: No such file"):
        open_rows(TraceArrivals(kind="trace", file=str(tmp_path / "none")))
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        open_rows(TraceArrivals(kind="trace", file=str(tmp_path)))


def test_lengths_written_oddly_but_clearly_are_taken(file: Path) -> None:
    read = Read(file, "time_s,input_tokens,output_tokens\n0,12.0, 7\n1,1e2,0")
    assert read.plain == [(0, 12, 7), (1, 100, 1)]
    assert len(read.repairs) == 3


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=300), start=st.sampled_from([b"", BURST.encode() + b"\n", b'{"timestamp": 1']))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes, start: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    try:
        Read(path, start + content)
    except InputError as error:
        assert str(error).isprintable()
