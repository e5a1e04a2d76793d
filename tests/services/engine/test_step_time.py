"""Step times by hand: recorded batch sizes, launches without graphs, experts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.engine.step_time import StepTime, graph_size
from tests.services.engine.simulated import TIMES


def decode(times: StepTime, sequences: int, context_tokens: int = 0) -> float:
    return times.seconds(
        prefill_tokens=0, pairs=0, sequences=sequences, context_tokens=context_tokens, repeated_tokens=0
    )


@pytest.mark.parametrize(
    ("sequences", "size"), [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (256, 256), (257, 272), (512, 512), (513, None)]
)
def test_recorded_batch_sizes(sequences: int, size: int | None) -> None:
    assert graph_size(sequences) == size


def test_a_batch_is_padded_to_a_recorded_size() -> None:
    assert decode(TIMES, 5) == decode(TIMES, 8) == pytest.approx(1.0 + 0.8)
    assert decode(TIMES, 9) == pytest.approx(max(1.0, 0.9) + 1.6)


def test_without_graphs_launching_hides_the_work_until_the_work_is_longer() -> None:
    eager = TIMES.model_copy(update={"cuda_graphs": False, "eager_launch_s": 5.0})
    assert decode(eager, 3, 100) == 5.0
    assert decode(eager, 3, 1000) == pytest.approx(1.0 + 0.3 + 10.0)


def test_a_large_batch_is_bound_by_arithmetic() -> None:
    assert decode(TIMES, 64) == pytest.approx(64 * 0.1 + 64 * 0.1)


def test_experts_are_read_as_far_as_the_batch_chooses_them() -> None:
    mixed = TIMES.model_copy(update={"routed_s": 8.0, "routed_share": 0.5, "prefill_token_s": 0.0})
    assert decode(mixed, 1) == pytest.approx(1.0 + 4.0 + 0.1)
    assert decode(mixed, 2) == pytest.approx(1.0 + 6.0 + 0.2)


@given(st.integers(1, 600), st.integers(0, 100_000), st.integers(0, 100_000), st.booleans())
def test_more_context_never_costs_less(sequences: int, less: int, more: int, graphs: bool) -> None:
    times = TIMES.model_copy(update={"cuda_graphs": graphs, "eager_launch_s": 5.0})
    assert decode(times, sequences, less) <= decode(times, sequences, less + more)
