"""Files of scrapes: readings over time, those of a request's time, and what cannot be read."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from cliffwatch.errors import InputError
from cliffwatch.surface.scrapes import Seen, read_engines, read_scrapes, seen_by

# Two engines behind one file; a restart between the second and the third scrape; the last one lacks a gauge.
SCRAPES = """\
# scraped 100
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a} b"} 1.0
vllm:num_requests_waiting{engine="1",model_name="a} b"} 2.0
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 0.7
vllm:num_preemptions_total 4
# scraped 105
vllm:num_requests_waiting 9
vllm:kv_cache_usage_perc 0.9
vllm:num_preemptions_total 6
# scraped 110
vllm:kv_cache_usage_perc 0.1
vllm:num_preemptions_total 3
"""


@pytest.mark.parametrize("packed", [False, True])
def test_readings_of_the_scrapes_while_a_request_was_under_way(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "metrics.prom"
    path.write_bytes(gzip.compress(SCRAPES.encode()) if packed else SCRAPES.encode())
    scrapes = read_scrapes(path)

    def during(*spans: tuple[float, float]) -> Seen:
        starts, ends = np.array(spans, dtype=float).reshape(-1, 2).T
        return scrapes.during(starts, ends)

    assert during((99.0, 100.5)) == Seen(1, waiting=3, kv_usage=0.7, preemptions=2)
    assert during((101.0, 102.0)) == Seen(0, preemptions=2)  # between two scrapes only the counter tells
    assert during((101.0, 102.0), (106.0, 111.0)) == Seen(1, kv_usage=0.1, preemptions=5)  # 2, and 3 after the restart
    assert during((104.0, 106.0), (99.0, 100.0)) == Seen(2, waiting=6, kv_usage=0.9, preemptions=5)
    assert during((0.0, 50.0)) == Seen(0)
    assert during() == Seen(0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no scrape"),
        ("vllm:num_preemptions_total 4\n", "line 1: is no line of a scrape"),
        ("# scraped soon\n", "line 1: is no number; got 'soon'"),
        ("# scraped inf\n", "line 1: is no time"),
        ("# scraped 1\n<html>\n", "line 2: is no line of a scrape; got '<html>'"),
        ("# scraped 1\nvllm:num_preemptions_total many\n", "line 2: is no number; got 'many'"),
        ("# scraped 1\n" + "x" * 70_000, "line 2: is too long"),
    ],
)
def test_what_is_no_file_of_scrapes_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "metrics.prom"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_scrapes(path)
    assert said in str(caught.value)
    assert "metrics.prom" in str(caught.value)


def test_a_cut_off_or_absent_file_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "cut.prom.gz"
    cut.write_bytes(gzip.compress(SCRAPES.encode())[:-20])
    for path, said in ((cut, "damaged gzip"), (tmp_path / "none", "cannot be read"), (tmp_path, "cannot be read")):
        with pytest.raises(InputError, match=said):
            read_scrapes(path)


def test_a_folder_is_several_engines(tmp_path: Path) -> None:
    (tmp_path / "a.prom").write_text(SCRAPES)
    (tmp_path / "b.prom.gz").write_bytes(
        gzip.compress(b"# scraped 103\nsglang:num_queue_reqs 5\nsglang:token_usage NaN\nDCGM_FI_PROF_DRAM_ACTIVE 0.6\n")
    )
    engines = read_engines(tmp_path)
    assert seen_by(engines, np.array([99.0]), np.array([104.0])) == Seen(2, 5, 0.7, 2, 0.6)
    assert seen_by((), np.array([99.0]), np.array([104.0])) is None
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="holds no file of scrapes"):
        read_engines(tmp_path / "none")
