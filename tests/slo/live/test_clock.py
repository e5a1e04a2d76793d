"""Clocks that differ: told by the least that they must, and in the status."""

from __future__ import annotations

import pytest

from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.slo.live.clock import clock_note
from cliffwatch.slo.live.read import read_status
from cliffwatch.slo.live.watched import watched
from cliffwatch.slo.spec import parse_slo
from tests.slo.live.records import OBJECTIVE, SLO
from tests.slo.live.scripted import serving, vector


@pytest.mark.parametrize(
    ("server_s", "said"),
    [(100.0, None), (99.1, None), (112.9, None), (90.0, "at least 10 s off"), (132.0, "at least 20 s off")],
)
def test_only_what_lies_outside_the_time_of_asking_is_told(server_s: float, said: str | None) -> None:
    """Asked between 100 and 112."""
    note = clock_note(server_s, 100.0, 112.0)
    assert (note is None) if said is None else (note is not None and said in note)


@pytest.mark.parametrize("ahead_s", [-600.0, 0.0, 600.0])
def test_the_status_warns_of_clocks_that_differ(ahead_s: float) -> None:
    series = ({"__name__": "cliffwatch_slo:events:rate5m", "model_name": "m", **OBJECTIVE}, 1.0)
    with serving(lambda path, query: (200, vector(series, ahead_s=ahead_s))) as server:
        files = {"chat": watched(parse_slo(SLO, source="slo.yaml"), source="slo.yaml")}
        warnings = read_status(files, Prometheus(server.url).ask_all).warnings
    assert any("clock" in text for text in warnings) is bool(ahead_s)
