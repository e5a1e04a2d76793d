"""Pieces of PromQL."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.utils import floatToGoString

from cliffwatch.slo.prometheus.promql import exact, le_pattern, quoted, selector, summed, window_s, window_text


@pytest.mark.parametrize(
    ("edge", "spellings"),
    [
        (2, ["2", "2.0", "2.00"]),
        (2.5, ["2.5"]),
        (100, ["100", "100.0"]),
        (0.00015, ["0.00015"]),
        (0.0001 * 1.5, ["0.00015000000000000001", "0.00015"]),
        (1e6, ["1e+06", "1000000", "1000000.0"]),
        (1.1e6, ["1.1e+06", "1100000", "1100000.0"]),
        (5e-5, ["5e-05"]),
    ],
)
def test_spellings_of_an_edge(edge: float, spellings: list[str]) -> None:
    for text in spellings:
        assert re.fullmatch(le_pattern(edge), text), text


def test_other_edges_do_not_match() -> None:
    for edge, other in ((2, "2.5"), (2, "20"), (2.5, "205"), (1, "10"), (10, "1"), (1e6, "1e+07"), (1e6, "10000000")):
        assert not re.fullmatch(le_pattern(edge), other), (edge, other)


@given(st.floats(1e-9, 1e12), st.floats(1e-9, 1e12))
def test_a_pattern_matches_its_edge_as_servers_write_it_and_no_other(edge: float, other: float) -> None:
    for text in (floatToGoString(edge), repr(edge)):
        assert re.fullmatch(le_pattern(edge), text), text
    if abs(edge - other) > 1e-12 * edge:
        for text in (floatToGoString(other), repr(other)):
            assert not re.fullmatch(le_pattern(edge), text), text


@given(st.text(max_size=20))
def test_a_value_matches_itself_only(text: str) -> None:
    assert re.fullmatch(exact(text), text)
    assert not re.fullmatch(exact(text), text + "x")


def test_nothing_breaks_out_of_a_label() -> None:
    assert selector("m", {"a": 'x"} or up{b="'}) == 'm{a="x\\"} or up{b=\\""}'
    assert quoted("a\\b\n") == '"a\\\\b\\n"'


def test_selectors_and_sums() -> None:
    assert selector("m", {}) == "m"
    assert selector("m", {"a": "1"}, {"le": "2|3"}) == 'm{a="1",le=~"2|3"}'
    assert summed(["a", "b"], "x") == "sum by (a, b) (x)"
    assert summed([], "x") == "sum(x)"


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m"), (3600, "1h"), (21_600, "6h"), (86_400, "1d"), (259_200, "3d"), (45, "45s")]
)
def test_windows(seconds: int, text: str) -> None:
    assert window_text(seconds) == text
    assert window_s(text) == seconds
