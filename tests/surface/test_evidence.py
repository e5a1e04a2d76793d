"""What is known of the points of a curve: tokens, sequences, and the scrapes during their requests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from cliffwatch.records.foreign import Foreign, read_foreign
from cliffwatch.surface.along import question_along
from cliffwatch.surface.cause import Point
from cliffwatch.surface.evidence import evidence
from cliffwatch.surface.scrapes import Scrapes, Seen


def measured(path: Path, *, clock: bool = True) -> Foreign:
    """Three lengths by two batches, two requests each; one a second, ten seconds apart from Unix second 1000 on.

    The first one is cached.
    """
    lines = []
    for at, (length, batch) in enumerate(
        (length, batch) for length in (512, 1024, 2048) for batch in (1, 4) for _ in "ab"
    ):
        lines.append({"input_tokens": length, "batch": batch, "ttft": 0.5, "e2e": 1.0})
        lines[-1] |= {"wall": 1000 + 10 * at} if clock else {}
    lines[0]["cache"] = "prefix"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_foreign(path)


SCRAPES = Scrapes(np.array([1000.5, 1040.5, 1050.5]), {"waiting": np.array([1.0, 3.0, 2.0])})


def test_tokens_sequences_and_readings_of_each_point(tmp_path: Path) -> None:
    source = measured(tmp_path / "a.jsonl")
    along = evidence(source, question_along("ttft_s", "input_tokens", "batch"), (SCRAPES,))
    assert set(along) == {(batch, length) for batch in ("1", "4") for length in (512.0, 1024.0, 2048.0)}
    assert along["1", 512.0] == Point(2, 512, None, Seen(1, waiting=1))
    assert along["4", 512.0] == Point(2, 2048, None, Seen(0))
    assert along["1", 1024.0] == Point(2, 1024, None, Seen(2, waiting=2.5))
    across = evidence(source, question_along("ttft_s", "batch", "input_tokens"), ())
    assert across["1k", 4.0] == Point(2, 4096, 4, None)


def test_without_a_clock_no_scrape_is_theirs(tmp_path: Path) -> None:
    source = measured(tmp_path / "a.jsonl", clock=False)
    along = evidence(source, question_along("ttft_s", "input_tokens", "batch"), (SCRAPES,))
    assert {point.seen for point in along.values()} == {Seen(0)}
