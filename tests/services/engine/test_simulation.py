"""Simulated runs: leaps change nothing, figures worked out by hand, the same records as a run's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cliffwatch.errors import InputError, RunError
from cliffwatch.records.manifest import RunState, read_manifest
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, RequestRow
from cliffwatch.workload.spec import Workload
from services.engine.command import app
from services.engine.core import IntakeTime
from services.engine.options import EngineOptions
from services.engine.profile import EngineLimits, Profile, load_profile
from services.engine.simulation import Simulation
from services.engine.step_time import StepTime
from tests.services.engine.simulated import STEADY

MEASURED = load_profile("h200-llama3-8b")
AT_ONCE = IntakeTime(request_s=0, token_s=0, prompt_s=0, wake_s=0, hash_token_s=0)


def profile(times: StepTime = STEADY, **limits: Any) -> Profile:
    usual = {"max_model_len": 4096, "max_num_seqs": 256, "token_budget": 8192, "kv_cache_tokens": 65536}
    changes = {"limits": EngineLimits(**(usual | limits)), "intake": AT_ONCE, "step_time": times}
    return MEASURED.model_copy(update=changes)


def workload(**changes: Any) -> Workload:
    usual: dict[str, Any] = {
        "name": "simulated",
        "seed": 3,
        "arrivals": {"kind": "poisson", "rate": 4},
        "duration": "30s",
        "input_tokens": {"kind": "loguniform", "min": 64, "max": 3000},
        "output_tokens": {"kind": "uniform", "min": 1, "max": 300},
        "batch": {"sizes": [1]},
        "cold_start": {"requests": 0},
    }
    return Workload.model_validate(usual | changes)


SHAPES: dict[str, dict[str, Any]] = {
    "open": {},
    "batches": {"batch": {"sizes": [1, 2, 4], "token_budget": "8k"}},
    "users": {"arrivals": {"kind": "concurrency", "users": 9, "think_time": "300ms"}},
    "prefixes": {"cache": {"prefix_share": 0.6, "prefix_fraction": 0.5, "groups": 3}},
    "sessions": {
        "sessions": {
            "turns": {"kind": "uniform", "min": 1, "max": 4},
            "think_time": "500ms",
            "input_tokens": {"kind": "fixed", "value": 30},
        }
    },
}


OPTIONS = st.sampled_from(
    [
        EngineOptions(),
        EngineOptions(chunked_prefill=False, scheduling_policy="priority"),
        EngineOptions(prefix_caching=False, sliding_window=512, attention_sinks=4),
        EngineOptions(num_speculative_tokens=3, draft_acceptance_rate=0.6),
        EngineOptions(eviction="lfu", enforce_eager=True, max_num_queued_reqs=20),
    ]
)


@pytest.mark.parametrize("shape", list(SHAPES))
@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    places=st.sampled_from([2, 7, 256]),
    cache=st.sampled_from([4096, 16384]),
    options=OPTIONS,
)
def test_leaps_change_nothing(shape: str, seed: int, places: int, cache: int, options: EngineOptions) -> None:
    spec = workload(seed=seed, duration="8s", **SHAPES[shape])
    engine = profile(MEASURED.step_time, max_num_seqs=places, kv_cache_tokens=cache)
    leaping, stepping = Simulation(spec, engine, options), Simulation(spec, engine, options, leaps=False)
    assert list(leaping.rows()) == list(stepping.rows())
    assert (leaping.tokens, leaping.now_s) == (stepping.tokens, stepping.now_s)


def by_id(rows: list[RequestRow]) -> list[RequestRow]:
    return sorted(rows, key=lambda row: row.request_id)


def test_steps_of_a_second_add_up() -> None:
    # One request a 5 s, three tokens each; every step takes 1 s: the first token after 1 s, the last after 3.
    spec = workload(
        arrivals={"kind": "constant", "rate": 0.2}, requests=4, duration=None,
        input_tokens={"kind": "fixed", "value": 100}, output_tokens={"kind": "fixed", "value": 3},
    )  # fmt: skip
    rows = by_id(list(Simulation(spec, profile()).rows()))
    assert [(row.first_token_ns or 0) - (row.sent_ns or 0) for row in rows] == [1_000_000_000] * 4
    assert [(row.last_token_ns or 0) - (row.sent_ns or 0) for row in rows] == [3_000_000_000] * 4
    assert [row.itl_s for row in rows] == [1.0] * 4
    assert [row.prompt_ttfts_us for row in rows] == [[1_000_000]] * 4
    assert {row.outcome for row in rows} == {Outcome.OK}


def test_every_token_asked_for_is_generated_and_every_request_has_a_row() -> None:
    simulation = Simulation(workload(), MEASURED)
    rows = list(simulation.rows())
    assert simulation.tokens == sum(row.max_output_tokens * row.batch for row in rows)
    assert sorted(row.request_id for row in rows) == list(range(len(rows)))


def test_a_prompt_that_the_engine_cannot_take_is_refused() -> None:
    spec = workload(input_tokens={"kind": "fixed", "value": 4000}, output_tokens={"kind": "fixed", "value": 200})
    rows = list(Simulation(spec, profile()).rows())
    assert {(row.outcome, row.status) for row in rows} == {(Outcome.HTTP_4XX, 400)}
    assert rows[0].error == "4200 tokens are more than the engine takes (4096)"
    assert rows[0].first_token_ns is None


def test_a_shared_beginning_is_found_in_the_cache() -> None:
    spec = workload(
        arrivals={"kind": "constant", "rate": 1}, requests=5, duration=None,
        input_tokens={"kind": "fixed", "value": 320}, output_tokens={"kind": "fixed", "value": 1},
        cache={"prefix_share": 1.0, "prefix_fraction": 0.5, "groups": 1},
    )  # fmt: skip
    rows = by_id(list(Simulation(spec, MEASURED).rows()))
    assert [row.cached_input_tokens for row in rows] == [0, 160, 160, 160, 160]
    unshared = Simulation(spec, MEASURED, EngineOptions(prefix_caching=False))
    assert {row.cached_input_tokens for row in unshared.rows()} == {0}


def test_users_wait_for_their_answers() -> None:
    # Two users, steps of 1 s, two tokens, no thinking: each has a request every 2 s.
    spec = workload(
        arrivals={"kind": "concurrency", "users": 2}, requests=6, duration=None,
        input_tokens={"kind": "fixed", "value": 10}, output_tokens={"kind": "fixed", "value": 2},
    )  # fmt: skip
    rows = by_id(list(Simulation(spec, profile()).rows()))
    assert [(row.sent_ns or 0) / 1e9 for row in rows] == [0, 0, 2, 2, 4, 4]


def test_the_command_leaves_a_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = CliRunner().invoke(
        app, ["simulate", "chat", "--out", str(out), "--duration", "1h", "--slo", "demo", "--json"]
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    manifest = read_manifest(out)
    assert manifest.state is RunState.COMPLETE
    assert manifest.accounting is not None
    assert manifest.accounting.balanced
    assert manifest.accounting.issued == said["requests"] > 1000
    assert manifest.engine == "simulated"
    assert manifest.warnings[0].startswith("simulated: no request was sent")
    assert RunReader(out).fetch("SELECT sum(output_tokens) FROM requests") == [(said["tokens"],)]
    again = CliRunner().invoke(app, ["simulate", "chat", "--out", str(out)])
    assert isinstance(again.exception, RunError)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.yaml"], "nowhere.yaml"),
        (["chat", "--profile", "b200"], "no such engine profile"),
        (["chat", "--duration", "soon"], "duration"),
        (["chat", "--slo", "absent"], "absent"),
    ],
)
def test_what_cannot_be_simulated_is_named(tmp_path: Path, arguments: list[str], said: str) -> None:
    refused = CliRunner().invoke(app, ["simulate", *arguments, "--out", str(tmp_path / "run")]).exception
    assert isinstance(refused, InputError)
    assert said in str(refused)
    assert not (tmp_path / "run").exists()


def test_cancellations_are_not_silently_left_out(tmp_path: Path) -> None:
    text = "name: x\narrivals: {kind: poisson, rate: 1}\nduration: 5s\n"
    text += "cancellations: {share: 0.5, after: {kind: fixed, value: 1}}\n"
    (tmp_path / "w.yaml").write_text(text)
    refused = CliRunner().invoke(app, ["simulate", str(tmp_path / "w.yaml"), "--out", str(tmp_path / "run")]).exception
    assert isinstance(refused, InputError)
    assert "cancellations" in str(refused)


def test_a_full_queue_refuses_and_says_so_in_the_row() -> None:
    """Two at once for 3 s each, one request a second: half of the places are free when each third comes."""
    spec = workload(
        arrivals={"kind": "constant", "rate": 1},
        duration="6s",
        input_tokens={"kind": "fixed", "value": 64},
        output_tokens={"kind": "fixed", "value": 3},
    )
    rows = by_id(list(Simulation(spec, profile(), EngineOptions(max_num_queued_reqs=2)).rows()))
    refused = [row.outcome is Outcome.HTTP_5XX for row in rows]
    assert sum(refused) == 2
    assert {(row.status, row.output_tokens) for row in rows if row.outcome is not Outcome.OK} == {(503, None)}


def test_drafts_bring_tokens_in_fewer_chunks() -> None:
    """One prompt alone, steps of a second: a first token, two drafts of four, one of two: at 1, 2, 3, 4 s."""
    spec = workload(
        arrivals={"kind": "constant", "rate": 0.1},
        duration="10s",
        input_tokens={"kind": "fixed", "value": 64},
        output_tokens={"kind": "fixed", "value": 11},
    )
    options = EngineOptions(num_speculative_tokens=3, draft_acceptance_rate=1.0)
    simulation = Simulation(spec, profile(), options)
    (row,) = simulation.rows()
    assert (row.output_tokens, row.chunks, simulation.tokens) == (11, 4, 11)
    assert row.itl_s == pytest.approx(3 / 10)
