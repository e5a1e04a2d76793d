"""Options of the scheduler: as a record, on the command line, and against a profile."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from cliffwatch.errors import InputError
from services.engine.assembly import Tuned, assemble
from services.engine.options import EngineOptions, takes_engine_options
from services.engine.profile import load_profile
from services.engine.sequence import Sequence

MEASURED = load_profile("h200-llama3-8b")


def read(*arguments: str) -> EngineOptions:
    """The options that a command gets from its command line."""
    got: list[EngineOptions] = []
    app = typer.Typer()

    @app.command()
    @takes_engine_options
    def command(name: str = "", *, options: EngineOptions) -> None:
        got.append(options)

    done = CliRunner().invoke(app, list(arguments), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return got[0]


def test_every_field_is_an_option_with_the_records_default() -> None:
    assert read() == EngineOptions()
    given = read("--max-model-len", "4k", "--no-chunked-prefill", "--scheduling-policy", "priority", "--name", "x")
    assert given == EngineOptions(max_model_len=4096, chunked_prefill=False, scheduling_policy="priority")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--max-num-seqs", "0"], "--max-num-seqs: .*got 0; allowed: greater than or equal to 1"),
        (["--max-model-len", "4 parsecs"], "--max-model-len: .*got '4 parsecs'"),
        (["--max-num-queued-reqs", "-1"], "--max-num-queued-reqs: .*got -1"),
    ],
)
def test_a_wrong_option_is_named_as_it_was_written(arguments: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(*arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--attention-sinks", "4"], "attention sinks are beside a window; allowed: with a sliding window"),
        (["--num-speculative-tokens", "3"], "drafts need their length and their acceptance rate; allowed: both"),
        (["--sliding-window", "4k"], "prompts share no cache .*; allowed: no prefix caching"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(*arguments)


def test_what_the_profile_cannot_do_is_refused() -> None:
    with pytest.raises(InputError, match="--max-model-len: is out of range; got 10000000"):
        assemble(MEASURED, EngineOptions(max_model_len=10_000_000))
    drafting = EngineOptions(num_speculative_tokens=8, draft_acceptance_rate=0.5, max_num_batched_tokens=8)
    with pytest.raises(InputError, match="--max-num-batched-tokens: a step has no room for a draft"):
        assemble(MEASURED, drafting)
    times = MEASURED.step_time.model_copy(update={"eager_launch_s": 0.0})
    unlaunched = MEASURED.model_copy(update={"step_time": times})
    with pytest.raises(InputError, match=r"--enforce-eager: .* does not say how long launching takes"):
        assemble(unlaunched, EngineOptions(enforce_eager=True))


def test_without_graphs_a_small_step_takes_the_launching_of_its_kernels() -> None:
    """The h200 profile: 25.6 ms of launching hide a decode step of 4.9 ms."""
    tiny = {"prefill_tokens": 0, "pairs": 0.0, "sequences": 1, "context_tokens": 100, "repeated_tokens": 0}
    eager = assemble(MEASURED, EngineOptions(enforce_eager=True)).step_time
    assert eager.seconds(**tiny) == 0.0256
    assert MEASURED.step_time.seconds(**tiny) < 0.005


def test_a_running_engine_takes_the_options_that_can_change() -> None:
    tuned = Tuned(MEASURED, EngineOptions())
    tuned.change({"max_num_seqs": 7, "eviction": "lfu"})
    tuned.change({"chunked_prefill": False})
    scheduler = tuned.scheduler
    assert (scheduler.limits.max_sequences, scheduler.limits.chunked_prefill) == (7, False)
    assert (scheduler.limits.token_budget, scheduler.kv.eviction) == (8192, "lfu")
    for wrong, says in (
        ({"prefix_caching": False}, "prefix_caching: cannot be changed while the engine runs"),
        ({"max_num_seqs": 0}, "max_num_seqs: .*got 0"),
        ({"nonsense": 1}, "nonsense: unknown key"),
    ):
        with pytest.raises(InputError, match=says):
            tuned.change(wrong)
    assert tuned.options == EngineOptions(max_num_seqs=7, eviction="lfu", chunked_prefill=False)


def test_who_waits_already_is_ranked_anew() -> None:
    tuned = Tuned(MEASURED, EngineOptions())
    relaxed, urgent = Sequence(5, 1, priority=3), Sequence(5, 1)
    for sequence in (relaxed, urgent):
        tuned.scheduler.add(sequence)
    tuned.change({"scheduling_policy": "priority"})
    assert list(tuned.scheduler.waiting) == [urgent, relaxed]
    tuned.change({"scheduling_policy": "fcfs"})
    assert list(tuned.scheduler.waiting) == [relaxed, urgent]
