"""Labels that a selector accepts, found by trying."""

from __future__ import annotations

import re

import pytest

from cliffwatch.slo.prometheus.matching import Matcher, accepted, labels_for, labels_outside


@pytest.mark.parametrize(
    "pattern",
    ["5..", "/v1/.+", "a|b", "(foo|bar)-[0-9]+", r"\d{3}", "", "x?y*", "[^a]b", r"10\.0\..*", "(?:a|b)(c|d)", "^a$"],
)
def test_a_pattern_is_met(pattern: str) -> None:
    found = labels_for([Matcher("a", "=~", pattern)])
    assert found is not None
    assert re.fullmatch(pattern, found.get("a", ""))


def test_all_matchers_of_a_label_hold() -> None:
    """Of the values that `code` is asked for only 503 is within the one pattern and not within the other."""
    code = [Matcher("code", "=~", "5.."), Matcher("code", "!~", "500|501"), Matcher("code", "=~", "503|200")]
    assert labels_for(code) == {"code": "503"}
    assert labels_for([Matcher("a", "=", "1"), Matcher("a", "=", "2")]) is None
    assert labels_for([Matcher("a", "=", "")]) == {}


def test_what_is_outside_is_asked_for_by_one_and_not_by_the_other() -> None:
    inside, other = [Matcher("job", "=", "j")], [Matcher("job", "=", "j"), Matcher("code", "=~", "5..")]
    found = labels_outside(inside, other)
    assert found is not None
    assert accepted(found, inside)
    assert not accepted(found, other)
    assert labels_outside(inside, inside) is None
