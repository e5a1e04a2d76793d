"""The journal: whole lines whatever happens, and the lock that tells a slow writer from a dead one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cliffwatch.errors import RunError
from cliffwatch.records.journal import Journal, is_written, read_journal, take_over
from cliffwatch.records.schema import Outcome
from tests.records.synthetic import make_row


def write_some(path: Path) -> None:
    journal = Journal(path, 3)
    journal.issued(1, 10)
    journal.issued(2, 20)
    journal.ended(make_row(1))
    journal.issued(3, 30)
    journal.ended(make_row(3, outcome=Outcome.STREAM_ERROR, error='broken "at"\nline 2 \u2028 é', warnings=["w"]))
    journal.close()


def test_reads_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "worker-003.journal"
    write_some(path)
    content = read_journal(path)
    assert content.header is not None
    assert (content.header.shard, content.header.in_parts) == (3, 0)
    assert content.open == {2: 20}
    assert content.rows[1] == make_row(1)
    assert content.rows[3].error == 'broken "at"\nline 2 \u2028 é'
    assert content.damaged == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.data())
def test_cut_anywhere_it_holds_every_line_before_the_cut(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "worker-003.journal"
    path.unlink(missing_ok=True)
    write_some(path)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    content = read_journal(path)
    lines = whole[:cut].count(b"\n")  # header, issued 1, issued 2, ended 1, issued 3, ended 3
    assert content.rows.keys() == {request for request, line in ((1, 4), (3, 6)) if lines >= line}
    assert content.open.keys() == {
        request for request, begin, end in ((1, 2, 4), (2, 3, 99), (3, 5, 6)) if begin <= lines < end
    }
    assert content.damaged == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.binary(max_size=80))
def test_garbage_between_lines_is_counted_and_harms_no_other_line(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "worker-003.journal"
    path.unlink(missing_ok=True)
    write_some(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"\x00" + garbage.replace(b"\n", b"") + b"\n", *lines[2:]]))
    content = read_journal(path)
    assert content.damaged == 1
    assert content.open == {2: 20}
    assert content.rows.keys() == {1, 3}


def test_a_row_that_cannot_be_is_damage_and_leaves_its_request_open(tmp_path: Path) -> None:
    path = tmp_path / "worker-003.journal"
    write_some(path)
    path.write_bytes(path.read_bytes().replace(b'"outcome":"ok"', b'"outcome":"fine"'))
    content = read_journal(path)
    assert (content.damaged, content.open) == (1, {1: 10, 2: 20})


def test_restart_keeps_only_what_is_open(tmp_path: Path) -> None:
    path = tmp_path / "worker-003.journal"
    journal = Journal(path, 3)
    journal.issued(1, 10)
    journal.issued(2, 20)
    journal.ended(make_row(1))
    journal.restart(1, {2: 20}.items())
    journal.issued(5, 50)
    journal.close()
    content = read_journal(path)
    assert content.header is not None
    assert (content.header.in_parts, content.open, content.rows) == (1, {2: 20, 5: 50}, {})


def test_a_missing_journal_is_empty_and_unwritten(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none").open == {}
    assert not is_written(tmp_path / "none")


def test_a_taken_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "worker-000.journal"
    Journal(path, 0).close()
    with pytest.raises(RunError, match="taken"):
        Journal(path, 0)


def test_the_lock_lives_as_long_as_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "worker-000.journal"
    code = (
        "import sys; from pathlib import Path; from cliffwatch.records.journal import Journal\n"
        "j = Journal(Path(sys.argv[1]), 0); j.restart(0, []); print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert is_written(path)
        writer.kill()
        writer.wait()
        assert not is_written(path)


def test_a_journal_is_taken_from_a_writer_that_stands_still(tmp_path):
    path = tmp_path / "worker-000.journal"
    journal = Journal(path, 0)
    journal.issued(1, 5)
    assert is_written(path)
    take_over(path)
    assert not is_written(path)
    journal.issued(2, 6)  # woken: it is heard by nobody
    assert read_journal(path).open == {1: 5}
    take_over(tmp_path / "worker-001.journal")  # none there
    assert [file.name for file in tmp_path.iterdir()] == ["worker-000.journal"]
