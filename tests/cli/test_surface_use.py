"""`cliffwatch surface use` on a file of measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cliffwatch.cli.surface_use import app
from cliffwatch.errors import InputError

ON = ("--hardware", "h200", "--model", "llama-3-8b")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two lengths by two batches, once each; half of it cached."""
    lines = [
        {"input_tokens": length, "batch": batch, "ttft": 0.1, "itl_mean": 0.005, "cache": cache}
        for length in (1024, 2048) for batch in (1, 2) for cache in ("none", "prefix")
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("used") / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_shares_by_length_and_batch_and_what_is_not_known(file: Path) -> None:
    done = invoke(file, *ON, "--uncached")
    assert done.exit_code == 0
    for said in (
        "prefill, by ttft_s, cache none",
        "989 TFLOP/s and 4.8 TB/s",
        "n 1 in each cell",
        "no cell has two requests",
        "? output lengths are not known",
        "request: not known: metric: was not measured",
    ):
        assert said in done.output
    (row,) = [line.split() for line in done.output.splitlines() if line.strip().startswith("2k")][:1]
    # 2,048 tokens in 0.1 s: 28.6 TFLOP of weights' products and 1.1 of attention, of 989 TFLOP/s: 30 %;
    # 15.0 GB of weights and 0.27 of cache, of 4.8 TB/s: 3.2 %
    assert row[1:4] == ["30", "/", "3.2"]


def test_json_has_what_text_has(file: Path) -> None:
    told = json.loads(invoke(file, *ON, "--uncached", "--json").output)
    assert (told["hardware"], told["model"]) == ("H200", "llama-3-8b")
    assert set(told["parts"]) == {"prefill", "decode"} and set(told["not_known"]) == {"request"}
    cell = told["parts"]["prefill"]["cells"][0]
    assert (cell["input_tokens"], cell["batch"], cell["n"]) == (1024, 1, 1)
    assert told["parts"]["decode"]["cells"][0]["bandwidth"] is None  # the file tells no output lengths


def test_shares_over_all_of_it_are_doubted(file: Path) -> None:
    done = invoke(file, "--hardware", "L4", "--model", "llama-3-8b", "--uncached", "--part", "prefill")
    assert "over 100 %" in done.output


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--hardware", "abacus", "--model", "llama-3-8b"), "--hardware"),
        (("--hardware", "h200", "--model", "eliza"), "--model"),
        ((*ON, "--part", "idle"), "--part"),
        (ON, "cache"),  # both states are there
    ],
)
def test_wrong_options_are_named(file: Path, arguments: tuple[str, ...], field: str) -> None:
    refused = invoke(file, *arguments).exception
    assert isinstance(refused, InputError)
    assert refused.field == field
