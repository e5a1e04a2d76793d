"""Sent against intended: rates, gaps and dispersion of made streams whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from cliffwatch.records.sending import Sending, Times, measure_sending


def measure(intended: Times, sent: Times | list[int | None], *, poisson: bool = False) -> Sending:
    with duckdb.connect() as connection:
        columns = {"intended_ns": pa.array(intended, pa.int64()), "sent_ns": pa.array(sent, pa.int64())}
        connection.register("stored", pa.table(columns))
        connection.execute(
            "CREATE VIEW requests AS SELECT *, 'measured' AS phase, NULL AS turn, 1 AS attempts, "
            "NULL::BIGINT[] AS attempt_sent_ns FROM stored"
        )
        return measure_sending(connection, poisson=poisson)


def even(count: int, gap_s: float) -> Times:
    return np.round(np.arange(count) * gap_s * 1e9).astype(np.int64)


def poisson(count: int, rate: float, seed: int) -> Times:
    return np.cumsum(np.random.default_rng(seed).exponential(1e9 / rate, count)).astype(np.int64)


def test_what_leaves_on_time_is_exact() -> None:
    times = even(1000, 0.02)
    found = measure(times, times + 300_000)
    assert (found.n, found.rate_error, found.variation_error, found.dispersion) == (1000, 0.0, 0.0, None)


def test_a_rate_that_is_not_kept() -> None:
    """Sleeping each gap, with 2 % of overhead each: 1 / 1.02 of the rate."""
    found = measure(even(1000, 0.02), even(1000, 0.0204))
    assert found.rate_error == pytest.approx(1 - 1 / 1.02, rel=1e-6)


def test_requests_that_never_left_lower_the_rate() -> None:
    times = even(1001, 0.02)
    sent = [int(at) if number % 10 == 0 or number % 10 > 4 else None for number, at in enumerate(times)]
    assert measure(times, sent).rate_error == pytest.approx(0.4)


def test_gaps_that_bunch() -> None:
    """Ten at a time in place of one each 20 ms: of ten gaps nine are 0 and one is 0.2 s, a variation of 3."""
    times = even(1001, 0.02)
    found = measure(times, times // 200_000_000 * 200_000_000)
    assert found.variation_error == pytest.approx(3.0, abs=0.01)
    assert found.rate_error is not None
    assert found.rate_error < 0.001


@pytest.mark.parametrize("count", [199, 400])  # too few; 400 in 8 s, too short
def test_too_little_to_tell(count: int) -> None:
    assert measure(even(count, 0.02), even(count, 0.02)) == Sending(count)


def test_all_at_once_has_no_rate() -> None:
    times = np.zeros(500, np.int64)
    assert measure(times, times) == Sending(500)


def test_short_gaps_are_not_compared() -> None:
    times = even(20_000, 0.001)
    assert measure(times, times).variation_error is None


def scores(rate: float, runs: int) -> Iterator[float]:
    for seed in range(runs):
        times = poisson(3000, rate, seed)
        score = measure(times, times, poisson=True).dispersion_score
        assert score is not None
        yield score


def test_poisson_streams_pass_the_test_of_dispersion() -> None:
    """Seeds are fixed. Of 60 true Poisson streams 5 % are beyond 1.96, which 9 or more would be once in 500 times."""
    found = list(scores(50.0, 60))
    assert max(found) < 4.0
    assert sum(score > 1.96 for score in found) < 9


def test_copies_of_one_stream_are_no_poisson_process() -> None:
    """Four workers that replay one seed: counts are 4 times a Poisson one's, dispersion 4."""
    times = np.sort(np.repeat(poisson(1000, 12.5, 3), 4))
    found = measure(times, times, poisson=True)
    assert found.dispersion == pytest.approx(4.0, rel=0.15)
    assert found.dispersion_score is not None
    assert found.dispersion_score > 20


def test_even_arrivals_are_no_poisson_process() -> None:
    times = even(3000, 0.02)
    found = measure(times, times, poisson=True)
    assert found.dispersion == pytest.approx(0.0, abs=0.01)
    assert found.dispersion_score is not None
    assert found.dispersion_score > 4
