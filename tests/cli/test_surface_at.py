"""`cliffwatch surface at` on a file of measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cliffwatch.cli.surface_at import app
from cliffwatch.errors import InputError


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1 ms a prompt and 10 us a token of each, over lengths of 512 to 16k and batches of 1 to 8; cached, a tenth."""
    lines = [
        {"input_tokens": length, "batch": batch, "cache": cache, "ttft": share * batch * (1e-3 + 1e-5 * length)}
        for length in (512 * 2**k for k in range(6))
        for batch in (1, 2, 4, 8)
        for cache, share in (("none", 1.0), ("prefix", 0.1))
    ]
    path = tmp_path_factory.mktemp("at") / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_an_untried_point_is_answered_with_its_interval(file: Path) -> None:
    asked = (file, "--input-tokens", "6k", "--batch", "3", "--uncached")
    told = json.loads(invoke(*asked, "--json").output)
    assert told["value_s"] == pytest.approx(3 * (1e-3 + 1e-5 * 6144), rel=0.02)
    assert told["low_s"] <= told["value_s"] <= told["high_s"]
    assert (told["extrapolated"], told["cells"], told["cache"]) == (False, 24, "none")
    answer, basis = invoke(*asked).output.splitlines()
    assert answer.startswith("p50 of ttft_s at 6k x 3, cache none: 1") and "90 % interval" in answer
    assert "cells within an octave; 24 cells in all" in basis
    cached = json.loads(invoke(file, "--input-tokens", "6k", "--batch", "3", "--cached", "--json").output)
    assert cached["value_s"] == pytest.approx(told["value_s"] / 10, rel=0.02)


def test_outside_it_refuses_and_extrapolates_only_when_asked(file: Path) -> None:
    asked = (file, "--input-tokens", "32k", "--uncached")
    refused = invoke(*asked).exception
    assert isinstance(refused, InputError)
    assert "nearest measured: 16k x 1" in str(refused)
    assert "outside what was measured: extrapolated" in invoke(*asked, "--extrapolate").output
    far = invoke(file, "--input-tokens", "1000000000", "--uncached", "--extrapolate").exception
    assert isinstance(far, InputError) and "too far outside" in str(far)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--input-tokens", "many", "--uncached"), "--input-tokens"),
        (("--input-tokens", "6k", "--uncached", "--batch", "2.5"), "--batch"),
        (("--input-tokens", "6k", "--uncached", "--statistic", "p12"), "statistic"),
        (("--input-tokens", "6k", "--uncached", "--metric", "output_rate"), "metric"),
        (("--input-tokens", "6k"), "cache"),
    ],
)
def test_wrong_options_are_named(file: Path, arguments: tuple[str, ...], field: str) -> None:
    refused = invoke(file, *arguments).exception
    assert isinstance(refused, InputError)
    assert refused.field == field
