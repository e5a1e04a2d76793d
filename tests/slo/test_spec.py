"""SLO files: what is read, and that everything else is refused with file, field, value and allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.errors import InputError
from cliffwatch.slo.sli import Clock, Sli
from cliffwatch.slo.spec import Objective, load_slo, parse_slo, presets

KEYS = ["name", "objectives", "sli", "threshold", "target", "input_tokens", "quantile", "slices", "watch", "calendar"]
CHAT = """
name: chat
objectives:
  - {sli: ttft, threshold: 2.5s, target: 95%}
  - {sli: ttft, threshold: 6s, target: 0.95, input_tokens: {min: 8k, max: 32k}}
  - {sli: itl, threshold: 50ms, target: 99%}
  - {sli: e2e, threshold: 30s, target: 95%, clock: sent}
  - {sli: availability, target: 99.9%}
cost: {gpu_hour_usd: 1.92, gpus: 2}
"""


def objective(**values: object) -> Objective:
    return Objective.model_validate({"sli": "ttft", "threshold": "1s", "target": "95%", **values})


def test_reads_quantities_as_people_write_them() -> None:
    slo = parse_slo(CHAT, source="chat.yaml")
    first, bucket, itl, e2e, availability = slo.objectives
    assert (first.sli, first.threshold, first.target) == (Sli.TTFT, 2.5, 0.95)
    assert bucket.input_tokens is not None
    assert (bucket.input_tokens.min, bucket.input_tokens.max) == (8192, 32768)
    assert (itl.threshold, e2e.clock, availability.threshold) == (0.05, Clock.SENT, None)
    assert availability.target == 0.999
    assert slo.cost is not None
    assert slo.cost.gpus == 2


def test_labels_are_sentences_for_people() -> None:
    labels = [one.label for one in parse_slo(CHAT, source="x").objectives]
    assert labels == [
        "TTFT ≤ 2.5 s",
        "TTFT ≤ 6 s, 8k to 32k input tokens",
        "ITL ≤ 50 ms",
        "E2E ≤ 30 s from sent",
        "availability",
    ]


@pytest.mark.parametrize(
    ("target", "needed"),
    [("95%", 200), ("99%", 1000), ("99.9%", 10_000), ("50%", 20), ("90%", 100), ("99.99%", 100_000)],
)
def test_needed_requests_are_exact(target: str, needed: int) -> None:
    assert objective(target=target).needed == needed  # in floats, 10 / (1 - 0.95) is 199.99999999999983


@pytest.mark.parametrize(
    ("values", "open_loop", "figure"),
    [
        ({}, True, "ttft_user_s"),
        ({}, False, "ttft_s"),
        ({"clock": "sent"}, True, "ttft_s"),
        ({"clock": "intended"}, False, "ttft_user_s"),
        ({"sli": "itl"}, True, "itl_s"),
        ({"sli": "e2e"}, True, "e2e_user_s"),
    ],
)
def test_the_clock_chooses_the_figure(values: dict[str, object], open_loop: bool, figure: str) -> None:
    assert objective(**values).figure(open_loop=open_loop) == figure


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name: a\nobjectives: []", "objectives"),
        ("name: a", "objectives"),
        ("objectives: [{sli: ttft, threshold: 1s, target: 95%}]", "name"),
        ("name: a\nobjectives: [{sli: speed, threshold: 1s, target: 95%}]", "'ttft'"),
        ("name: a\nobjectives: [{sli: ttft, target: 95%}]", "needs a threshold"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1 parsec, target: 95%}]", "250ms"),
        ("name: a\nobjectives: [{sli: ttft, threshold: -1s, target: 95%}]", "longer than nothing"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 0, target: 95%}]", "longer than nothing"),
        ("name: a\nobjectives: [{sli: ttft, threshold: .inf, target: 95%}]", "threshold"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 100}]", "target"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 100%}]", "leaves no budget"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 0}]", "above 0 %"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 100.5%}]", "target"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: -1}]", "target"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 95}]", "95%"),
        ("name: a\nobjectives: [{sli: availability, threshold: 1s, target: 95%}]", "neither a threshold"),
        ("name: a\nobjectives: [{sli: itl, threshold: 1s, target: 95%, clock: intended}]", "leave clock out"),
        (
            "name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 9%, input_tokens: {min: 8k, max: 1k}}]",
            "above max",
        ),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 95%, input_tokens: {}}]", "min, max or both"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 95%, input_tokens: {min: 1.5}}]", "whole number"),
        ("name: a\nobjectives: [{sli: ttft, threshold: 1s, target: 95%, percentile: 3}]", "unknown key"),
        ("name: a\ngpu: 3\nobjectives: [{sli: ttft, threshold: 1s, target: 95%}]", "unknown key"),
        ("name: a\nobjectives: [{sli: availability, target: 95%}, {sli: availability, target: 99%}]", "stands twice"),
        (
            "name: a\nobjectives: [{sli: itl, threshold: 0.3, target: 9%}, {sli: itl, threshold: 0.3001, target: 8%}]",
            "stands twice",
        ),
        ("name: a\ncost: {gpu_hour_usd: -2}\nobjectives: [{sli: availability, target: 95%}]", "cost.gpu_hour_usd"),
        ("name: a\ncost: {gpu_hour_usd: 2, gpus: true}\nobjectives: [{sli: availability, target: 95%}]", "cost.gpus"),
        ("name: a\nobjectives: nope", "objectives"),
        ("- 1", "mapping"),
        ("name: [", "not valid YAML"),
    ],
)
def test_refuses_with_the_place_and_what_is_allowed(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_slo(text, source="slo.yaml")
    assert str(caught.value).startswith("slo.yaml: ")
    assert says in str(caught.value)


def test_a_target_just_under_all_is_accepted() -> None:
    assert objective(target="99.99999%").needed == 100_000_000


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"name: \xe9"])
def test_refuses_what_is_not_utf8(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "slo.yaml"
    path.write_bytes(data)
    with pytest.raises(InputError, match="not UTF-8"):
        load_slo(path)


def test_refuses_a_huge_file_and_a_missing_one(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as stream:
        stream.truncate(50 << 20)
    with pytest.raises(InputError, match="1 MiB"):
        load_slo(path)
    with pytest.raises(InputError, match=r"nowhere: no such file"):
        load_slo("nowhere")
    with pytest.raises(InputError, match="cannot be read"):
        load_slo(tmp_path)


@pytest.mark.parametrize("name", sorted(presets()))
def test_presets_are_valid_and_named_as_their_file(name: str) -> None:
    assert load_slo(name).name == name


def test_a_file_comes_before_a_preset_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chat").write_text(CHAT.replace("name: chat", "name: mine"))
    assert load_slo("chat").name == "mine"


@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_yaml_is_read_or_refused_but_never_a_traceback(data: object) -> None:
    try:
        parse_slo(yaml.safe_dump(data, allow_unicode=True), source="slo.yaml")
    except InputError as error:
        assert "slo.yaml" in str(error)


def test_too_many_objectives_are_refused_by_their_number(tmp_path: Path) -> None:
    file = tmp_path / "slo.yaml"
    file.write_text("name: many\nobjectives:\n" + "  - {sli: ttft, threshold: 1s, target: 99%}\n" * 65)
    with pytest.raises(InputError) as refused:
        load_slo(file)
    assert (refused.value.field, refused.value.value) == ("objectives", "a list of 65")
    assert refused.value.allowed == "a list of 1 to 64 objectives"
    assert len(str(refused.value)) < 300
