"""Errors say file, field, value and what is allowed, whatever these hold."""

from __future__ import annotations

import copy
import pickle

import pytest

from cliffwatch.errors import CliffwatchError, ExitCode, InputError, UnreachableError, shorten


def test_reads_as_one_sentence() -> None:
    error = InputError("cannot be used", file="w.yaml", field="arrivals.rate", value=-4, allowed="above 0")
    assert str(error) == "w.yaml: arrivals.rate: cannot be used; got -4; allowed: above 0"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("is empty"), "is empty"),
        (InputError("is empty", file="w.yaml"), "w.yaml: is empty"),
        (InputError("is empty", field="name"), "name: is empty"),
        (InputError("unknown", value=0), "unknown; got 0"),
        (InputError("unknown", value=""), "unknown; got ''"),
        (InputError("unknown", value=None), "unknown"),
    ],
)
def test_leaves_out_what_is_not_known(error: InputError, text: str) -> None:
    assert str(error) == text


def test_a_huge_value_is_cut() -> None:
    text = str(InputError("too long", value="x" * 1_000_000))
    assert len(text) < 120
    assert text.endswith("…")
    assert len(shorten("x" * 100)) == 80
    assert shorten("x" * 78) == repr("x" * 78)


def test_control_characters_do_not_reach_a_terminal() -> None:
    text = str(InputError("bad", file="a\x1b[31mb.yaml", field="k\ney", value="v\x1b"))
    assert text.isprintable()
    assert "a\\x1b[31mb.yaml: k\\ney" in text


def test_exit_codes_are_those_of_the_design() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 130]
    assert CliffwatchError("x").exit_code == ExitCode.BAD_INPUT
    assert UnreachableError("x").exit_code == ExitCode.UNREACHABLE


def test_survives_a_copy_and_a_pickle() -> None:
    error = InputError("bad", file="f", field="a.b", value=[1], allowed="none")
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert str(twin) == str(error)
        assert twin.field == "a.b"
