"""Workload files: what is read, what is refused and how."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.config import parse_config
from cliffwatch.errors import InputError
from cliffwatch.workload.spec import Workload, load_workload, preset_names, preset_text, with_changes

BASE = "duration: 60s\narrivals: {kind: poisson, rate: 4}\n"


LOAD = "duration: 60s\narrivals: "


def read(text: str) -> Workload:
    return parse_config(text, Workload, source="w.yaml")


def refusal(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value).startswith("w.yaml: ")
    return caught.value


def test_the_least_file_is_the_long_tail() -> None:
    workload = read(BASE)
    assert workload.input_tokens.bounds == (1024, 32768)
    assert workload.batch.sizes == (1, 2, 4, 8, 16)
    assert (workload.seed, workload.endpoint, workload.max_lag) == (42, "auto", 10.0)
    assert (workload.open_loop, workload.rate, workload.users, workload.planned_requests) == (True, 4.0, None, None)


def test_reads_every_field_as_people_write_it() -> None:
    workload = read("""
name: mine
seed: 7
duration: 2m
requests: 500
arrivals: {kind: concurrency, users: 8}
input_tokens: {kind: empirical, values: [512, 2k], weights: [3, 1]}
output_tokens: {kind: uniform, min: 8, max: 512}
batch: {sizes: [8, 1], token_budget: 16k, falloff: 0.5}
cache: {prefix_share: 25%, prefix_fraction: 0.8, groups: 4}
warmup: {requests: 10}
cold_start: {requests: 2}
max_lag: 500ms
endpoint: completions
model: meta-llama/Llama-3.1-8B
timeouts: {connect: 1s, first_token: 1m, stall: 5s, total: 1h}
sampling: {temperature: 0.7, top_p: 95e-2, ignore_eos: null}
cost: {gpu_hour_usd: 1.92, gpus: 2}
""")
    assert workload.duration == 120
    assert (workload.open_loop, workload.rate, workload.users) == (False, None, 8)
    assert workload.batch.sizes == (1, 8)  # kept in order, for a stable draw
    assert workload.cache.prefix_share == 0.25
    assert workload.max_lag == 0.5
    assert workload.sampling.parameters() == {"temperature": 0.7, "top_p": 0.95}
    assert workload.cost is not None
    assert workload.cost.gpu_hour_usd == 1.92


@pytest.mark.parametrize(
    ("text", "field", "says"),
    [
        (BASE + "rat: 3", "rat", "unknown key"),
        ("duration: 60s\narrivals: {kind: poisson, rate: -4}", "arrivals.rate", "0.001"),
        ("duration: 60s\narrivals: {kind: poisson, rate: 0}", "arrivals.rate", "0.001"),
        ("duration: 60s\narrivals: {kind: poisson, rate: 4/s}", "arrivals.rate", "a number"),
        ("duration: 60s\narrivals: {kind: poisson, users: 4}", "arrivals.users", "the keys kind, rate"),
        ("duration: 60s\narrivals: {kind: burst, rate: 4}", "arrivals.kind", "constant, poisson, gamma, ramp"),
        ("duration: 60s\narrivals: {kind: concurrency, users: 0}", "arrivals.users", "greater than or equal to 1"),
        ("duration: 60s\narrivals: {kind: concurrency, users: 1.5}", "arrivals.users", "a whole number"),
        ("duration: 60s", "arrivals", "is missing"),
        (LOAD + "{kind: gamma, rate: 4}", "arrivals.burstiness", "is missing"),
        (LOAD + "{kind: gamma, rate: 4, burstiness: 0}", "arrivals.burstiness", "0.01"),
        (LOAD + "{kind: ramp, end_rate: 3}", "arrivals.over", "is missing"),
        (LOAD + "{kind: ramp, end_rate: 3, over: 9s, shape: steps}", "arrivals.stages", "is missing"),
        (LOAD + "{kind: ramp, end_rate: 3, over: 9s, stages: 3}", "arrivals.stages", "no meaning in a linear ramp"),
        (LOAD + "{kind: ramp, end_rate: 3, over: 9s, shape: geometric}", "arrivals.start_rate", "0.001"),
        (LOAD + "{kind: ramp, end_rate: 3, over: 9s, burstiness: 2, spacing: even}", "arrivals.burstiness", "evenly"),
        (LOAD + "{kind: diurnal, low: 4, high: 3}", "arrivals.high", "at least 4"),
        (LOAD + "{kind: bursts, on: 1s, off: 0, on_rate: 3}", "arrivals.off", "greater than 0"),
        (LOAD + "{kind: curve, points: []}", "arrivals.points", "1 at least"),
        (LOAD + "{kind: curve, points: [{at: 0, rate: 0}]}", "arrivals.points", "no rate above zero"),
        (LOAD + "{kind: curve, points: [{at: 5, rate: 1}, {at: 5, rate: 2}]}", "arrivals.points", "times that rise"),
        (LOAD + "{kind: curve, points: [{at: 5, rate: 1}], repeat: 5s}", "arrivals.repeat", "above 5 s"),
        (LOAD + "{kind: concurrency, users: 4, think_time: -1}", "arrivals.think_time", "0"),
        ("requests: 100\narrivals: {kind: curve, points: [{at: 0, rate: 1}, {at: 9, rate: 0}]}", "requests", "30 days"),
        ("arrivals: {kind: poisson, rate: 4}", "requests", "so is duration"),
        ("duration: 0\narrivals: {kind: poisson, rate: 4}", "duration", "greater than 0"),
        ("duration: 60 parsecs\narrivals: {kind: poisson, rate: 4}", "duration", "250ms"),
        ("duration: 31d\narrivals: {kind: poisson, rate: 4}", "duration", "2592000"),
        ("requests: 1e9\narrivals: {kind: poisson, rate: 4}", "requests", "over 30 days"),
        ("requests: 0\narrivals: {kind: poisson, rate: 4}", "requests", "greater than or equal to 1"),
        (BASE + "seed: -1", "seed", "greater than or equal to 0"),
        (BASE + "input_tokens: {kind: uniform, min: 4k, max: 1k}", "input_tokens.max", "at least 4096"),
        (BASE + "input_tokens: {kind: loguniform, min: 0, max: 1k}", "input_tokens.min", "greater than or equal to 1"),
        (BASE + "input_tokens: {kind: fixed, value: 2kb}", "input_tokens.value", "32k"),
        (BASE + "input_tokens: {kind: empirical, values: []}", "input_tokens.values", "1 at least"),
        (BASE + "input_tokens: {kind: empirical, values: [0]}", "input_tokens.values[0]", "equal to 1"),
        (BASE + "input_tokens: {kind: empirical, values: [1, 2], weights: [1]}", "input_tokens.weights", "of the 2"),
        (BASE + "input_tokens: {kind: empirical, values: [1], weights: [0]}", "input_tokens.weights", "above zero"),
        (BASE + "input_tokens: {kind: empirical, values: [1], weights: [-1]}", "input_tokens.weights[0]", "0"),
        (
            BASE + "output_tokens: {kind: lognormal, median: 4, sigma: 1, min: 8, max: 9}",
            "output_tokens.median",
            "8 to 9",
        ),
        (BASE + "output_tokens: {kind: lognormal, median: 8, sigma: 0, min: 8, max: 9}", "output_tokens.sigma", "0"),
        (BASE + "batch: {sizes: []}", "batch.sizes", "1 at least"),
        (BASE + "batch: {sizes: [1, 0]}", "batch.sizes[1]", "greater than or equal to 1"),
        (BASE + "batch: {sizes: [1, 1]}", "batch.sizes", "each size once"),
        (BASE + "batch: {sizes: [2, 4]}", "batch", "32768 tokens"),
        (BASE + "batch: {sizes: [1], falloff: -1}", "batch.falloff", "0"),
        (BASE + "cache: {prefix_share: 120%}", "cache.prefix_share", "95%"),
        (BASE + "cache: {groups: 0}", "cache.groups", "1"),
        (BASE + "warmup: {duration: 60s}", "warmup", "shorter than 60 s"),
        (BASE + "warmup: {duration: 1s, requests: 2}", "warmup.requests", "one of the two"),
        (BASE + "cold_start: {requests: 1}\nrequests: 1", "cold_start", "leaves none of 1"),
        (BASE + "retries: {on: [http_404]}", "retries.on[0]", "http_503"),
        (BASE + "retries: {attempts: 1}", "retries.attempts", "2"),
        (BASE + "cancellations: {share: 10%}", "cancellations.after", "missing"),
        (BASE + "warmup: {requests: 4}\nrequests: 5", "warmup", "none of 5"),
        (BASE + "endpoint: chat", "endpoint", "batch.sizes [1]"),
        (BASE + "endpoint: grpc", "endpoint", "triton, llamacpp"),
        (BASE + "timeouts: {connect: 0}", "timeouts.connect", "greater than 0"),
        (BASE + "sampling: {temperature: 3}", "sampling.temperature", "2"),
        (BASE + "cost: {gpu_hour_usd: -1}", "cost.gpu_hour_usd", "0"),
        (BASE + 'name: "a\\e[31m"', "name", "one line"),
        (BASE + "endpoint: triton", "endpoint", "triton with batch.sizes [1]"),
        (BASE + "models: []", "models", "1 at least"),
        (BASE + "models: [{name: a}, {name: a}]", "models", "names a twice"),
        (BASE + "models: [{name: a, weight: 0}]", "models", "one above zero"),
        (BASE + "models: [{name: a, weight: -1}]", "models[0].weight", "0"),
        (BASE + "models: [{name: a}]\nmodel: b", "models", "one of the two"),
        (BASE + 'tenants: [{name: "a\\r\\nX-Admin: 1"}]', "tenants[0].name", "printable ASCII"),
        (BASE + "tenants: [{name: a, header: Authorization}]", "tenants[0].header", "X-Tenant-Id"),
        (BASE + "tenants: [{name: a, header: 'X: y'}]", "tenants[0].header", "X-Tenant-Id"),
        (BASE + "priority: [{value: 0.5}]", "priority[0].value", "whole number"),
        (BASE + "priority: [{value: 0}, {value: 0}]", "priority", "names 0 twice"),
        (BASE + "sampling: {extra: {max_tokens: 5}}", "sampling.extra", "would replace max_tokens"),
        (BASE + "sampling: {extra: {n_predict: 5}}", "sampling.extra", "would replace n_predict"),
        (BASE + "sampling: {extra: {n: 5}}", "sampling.extra", "would replace n,"),
        (BASE + "sampling: {extra: {seed: 5}}", "sampling.extra", "beside extra"),
        (BASE + "sampling: {extra: {logit_bias: {5: 1}}}", "sampling.extra.logit_bias", "plain JSON"),
        (BASE + "sampling: {extra: {x: .inf}}", "sampling.extra.x", "JSON"),
        (BASE + "sampling: {stop: ['']}", "sampling.stop[0]", "1 at least"),
        (BASE + "sessions: {}", "sessions.turns", "missing"),
        (BASE + "sessions: {turns: 3}", "sessions.turns", "mapping"),
        (BASE + "sessions: {turns: {kind: fixed, value: 1001}}", "sessions.turns", "1000 a session"),
        (BASE + "sessions: {turns: {kind: trace}}", "sessions.turns", "another kind"),
        (BASE + "sessions: {turns: {kind: fixed, value: 2}, think_time: -1}", "sessions.think_time.value", "0"),
        (BASE + "sessions: {turns: {kind: fixed, value: 2}, think_time: soon}", "sessions.think_time.value", "250ms"),
        (BASE + "sessions: {turns: {kind: fixed, value: 2}, history: cut}", "sessions.history", "'grow'"),
        (BASE + "sessions: {turns: {kind: fixed, value: 2}}\nbatch: {}", "batch", "sizes [1] with sessions"),
        (BASE + "sessions: {turns: {kind: fixed, value: 2}}\nendpoint: completions", "endpoint", "chat with sessions"),
    ],
)
def test_refuses_with_the_place_and_what_is_allowed(text: str, field: str, says: str) -> None:
    error = refusal(text)
    assert error.field == field
    assert says in str(error)


def test_a_batch_of_short_prompts_needs_no_size_of_one() -> None:
    workload = read(BASE + "input_tokens: {kind: fixed, value: 1k}\nbatch: {sizes: [16]}")
    assert workload.batch.sizes == (16,)


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_well_formed_and_named_as_their_file(name: str) -> None:
    workload = load_workload(name)
    assert workload.name == name
    assert workload.description


def test_the_presets_are_these() -> None:
    assert preset_names() == ["chat", "closed", "demo", "longtail", "smoke"]
    with pytest.raises(InputError, match="nope: is no preset; allowed: chat, closed"):
        preset_text("nope")


def test_a_file_comes_before_a_preset_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("smoke").write_text(BASE)
    Path("chat").mkdir()
    assert load_workload("smoke").name == "workload"
    assert load_workload("chat").name == "chat"


def test_a_file_that_is_not_there_names_the_presets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; allowed: a workload file, or a preset: chat"):
        load_workload(str(tmp_path / "x.yaml"))
    with pytest.raises(InputError, match="Is a directory"):
        load_workload(str(tmp_path))


def test_changes_are_checked_like_a_file() -> None:
    workload = load_workload("longtail")
    changed = with_changes(workload, duration="20s", seed=1)
    assert (changed.duration, changed.seed, changed.arrivals) == (20.0, 1, workload.arrivals)
    with pytest.raises(InputError, match="options: warmup: is as long as the whole load"):
        with_changes(workload, duration="5s")
    with pytest.raises(InputError, match="--rate: seed"):
        with_changes(workload, source="--rate", seed="x")


@given(text=st.text(max_size=30), key=st.sampled_from(sorted(Workload.model_fields)))
def test_no_value_makes_a_traceback(text: str, key: str) -> None:
    try:
        with_changes(load_workload("smoke"), **{key: text})
    except InputError as error:
        assert str(error).isprintable()


def test_a_single_request_is_measured_not_taken_for_the_cold_start() -> None:
    spec = {"arrivals": {"kind": "constant", "rate": 1}}
    assert Workload.model_validate({**spec, "requests": 1}).cold_start.requests == 0
    assert Workload.model_validate({**spec, "requests": 2}).cold_start.requests == 1
    assert Workload.model_validate({**spec, "duration": 5}).cold_start.requests == 1
