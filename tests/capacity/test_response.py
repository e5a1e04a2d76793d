"""The fitted crossing: right on a curve that is known, none where there is nothing to fit."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.capacity.evidence import Count
from cliffwatch.capacity.response import crossing


def counts(rates: list[float], n: int, rng: np.random.Generator | None = None) -> list[Count]:
    """Misses of 5 % at a rate of 100, their logit rising by 0.1 a rate."""
    found = []
    for rate in rates:
        share = 1 / (1 + np.exp(np.log(19) - 0.1 * (rate - 100)))
        bad = round(n * share) if rng is None else int(rng.binomial(n, share))
        found.append(Count(n=n, bad=bad, inflation=1.0, caution=1.0))
    return found


def test_a_logistic_curve_is_found_again():
    rates = [90.0, 95.0, 105.0, 110.0]
    fit = crossing(rates, counts(rates, 1_000_000), 0.95, 0.95)
    assert fit.rate == pytest.approx(100.0, abs=0.01)
    assert fit.slope == pytest.approx(0.1, rel=0.01)
    assert fit.low < fit.rate < fit.high
    assert fit.probes == 4


def test_the_interval_holds_the_edge_as_often_as_it_says():
    # 95 %: fewer than 183 of 200 come by chance once in 40 runs; the seed is fixed
    rng, rates = np.random.default_rng(7), [92.0, 97.0, 103.0, 108.0]
    fits = [crossing(rates, counts(rates, 1500, rng), 0.95, 0.95) for _ in range(200)]
    assert sum(fit is not None and fit.low <= 100.0 <= fit.high for fit in fits) >= 183


def test_probes_that_scatter_more_than_they_should_widen_it():
    rates = [92.0, 97.0, 103.0, 108.0]
    calm = crossing(rates, counts(rates, 20_000), 0.95, 0.95)
    rough = counts(rates, 20_000)
    rough[1] = rough[1].model_copy(update={"bad": int(rough[1].bad * 1.3)})
    wide = crossing(rates, rough, 0.95, 0.95)
    assert wide is not None
    assert wide.high - wide.low > 2 * (calm.high - calm.low)


@pytest.mark.parametrize(
    "bad", [[0, 0, 0], [1000, 1000, 1000], [50, 50, 50], [80, 50, 30]], ids=["none", "all", "level", "falling"]
)
def test_there_is_no_crossing_without_a_rise(bad):
    found = [Count(n=1000, bad=one, inflation=1.0, caution=1.0) for one in bad]
    assert crossing([90.0, 100.0, 110.0], found, 0.95, 0.95) is None


def test_one_rate_or_none_is_no_curve():
    assert crossing([], [], 0.95, 0.95) is None
    assert crossing([100.0, 100.0], counts([100.0, 100.0], 1000), 0.95, 0.95) is None
    assert crossing([90.0, 110.0], [Count(n=0, bad=0, inflation=1.0, caution=1.0)] * 2, 0.95, 0.95) is None
