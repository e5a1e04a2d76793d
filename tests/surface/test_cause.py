"""Causes of a jump: each rule speaks where its evidence is there on both sides, and only then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cliffwatch.surface.cause import Limits, Point, causes, why_unknown
from cliffwatch.surface.scrapes import Seen

CALM = Seen(3, waiting=0, kv_usage=0.2, preemptions=0, memory_busy=0.3)
NONE = Limits()


@pytest.mark.parametrize(
    ("name", "changed", "figures"),
    [
        ("preemption", {"preemptions": 4.0}, ("0 preemptions over 6", "4 over 6")),
        ("KV cache full", {"kv_usage": 0.97}, ("20%", "97%")),
        ("queueing", {"waiting": 12.0}, ("0 requests", "12", "(3 and 3 scrapes)")),
        ("memory bandwidth", {"memory_busy": 0.9}, ("30%", "90%")),
    ],
)
def test_a_reading_that_rises_is_a_cause_with_its_figures(
    name: str, changed: dict[str, float], figures: tuple[str, ...]
) -> None:
    risen = replace(CALM, **changed)
    (found,) = causes(Point(6, seen=CALM), Point(6, seen=risen), NONE)
    assert found.name == name
    assert all(figure in found.evidence for figure in figures)
    assert causes(Point(6, seen=risen), Point(6, seen=risen), NONE) == ()  # it was there before the jump as well
    assert causes(Point(6, seen=risen), Point(6, seen=CALM), NONE) == ()
    unknown = replace(CALM, **dict.fromkeys(changed))
    assert causes(Point(6, seen=unknown), Point(6, seen=risen), NONE) == ()
    assert causes(Point(6), Point(6, seen=risen), NONE) == ()


LIMITS = Limits(batched_tokens=8192, graph_sizes=(1, 2, 4, 8, 64), sequences=256)


@pytest.mark.parametrize(
    ("after", "before", "names"),
    [
        (Point(6, 8192), Point(6, 8193), ["chunked prefill"]),
        (Point(6, 4096), Point(6, 8192), []),  # both in one step
        (Point(6, 8193), Point(6, 16385), []),  # more steps where there were several already: as many as tokens
        (Point(6, sequences=8), Point(6, sequences=9), ["CUDA graph padding"]),  # steps of 8, then of 64
        (Point(6, sequences=4), Point(6, sequences=8), []),
        (Point(6, sequences=64), Point(6, sequences=65), ["CUDA graph padding"]),
        (Point(6, sequences=100), Point(6, sequences=200), []),  # beyond every graph already
        (Point(6, sequences=256), Point(6, sequences=257), ["queueing"]),
    ],
)
def test_settings_of_the_engine_are_crossed_or_not(after: Point, before: Point, names: list[str]) -> None:
    assert [one.name for one in causes(after, before, LIMITS)] == names
    assert causes(after, before, NONE) == ()


def test_preemptions_are_weighed_by_requests() -> None:
    once, often = Seen(3, preemptions=2.0), Seen(30, preemptions=20.0)
    assert causes(Point(6, seen=once), Point(60, seen=often), NONE) == ()
    assert [one.name for one in causes(Point(6, seen=once), Point(6, seen=often), NONE)] == ["preemption"]


def test_why_a_cause_is_not_known() -> None:
    known = Point(6, seen=CALM)
    assert "no engine metrics" in why_unknown(Point(6), known)
    assert "no scrape" in why_unknown(known, Point(6, seen=Seen(0)))
    assert "show none" in why_unknown(known, known)
