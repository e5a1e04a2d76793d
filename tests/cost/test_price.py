"""Prices against arithmetic done by hand."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from cliffwatch.cost.price import HardwareCost, cost_usd, price
from cliffwatch.cost.work import Work

H200 = HardwareCost(gpu_hour_usd=1.92)


def test_cost_of_one_short_request() -> None:
    # 1.28 s * 1.92 USD / 3600 s = 2.4576 / 3600 USD, which is 0.07 cents and not 7 cents
    assert cost_usd(1.28, H200) == pytest.approx(0.000682667, abs=5e-10)
    assert f"{cost_usd(1.28, H200):.6f}" == "0.000683"


def test_an_hour_of_two_gpus_is_twice_the_hourly_price() -> None:
    assert cost_usd(3600, HardwareCost(gpu_hour_usd=1.92, gpus=2)) == pytest.approx(3.84)


def test_prices_are_the_whole_cost_over_each_count() -> None:
    # half an hour costs 0.96 USD; 480 requests, 2 million input and 0.5 million output tokens
    result = price(H200, Work(held_s=1800, requests=480, input_tokens=2_000_000, output_tokens=500_000))
    assert result.usd == pytest.approx(0.96)
    assert result.usd_per_request == pytest.approx(0.002)
    assert result.usd_per_million_input_tokens == pytest.approx(0.48)
    assert result.usd_per_million_output_tokens == pytest.approx(1.92)
    assert result.undefined == {}


def test_no_success_has_no_price_but_a_cost() -> None:
    result = price(H200, Work(held_s=60, requests=0, input_tokens=0, output_tokens=0))
    assert result.usd == pytest.approx(0.032)
    assert result.usd_per_request is None
    assert result.undefined["usd_per_request"] == "no successful requests"
    assert result.undefined["usd_per_million_output_tokens"] == "no output tokens"


def test_unknown_tokens_are_not_zero() -> None:
    result = price(H200, Work(held_s=60, requests=3, input_tokens=None, output_tokens=30))
    assert result.usd_per_million_input_tokens is None
    assert result.undefined == {"usd_per_million_input_tokens": "input tokens not known"}


def test_nothing_ended_costs_an_unknown_amount() -> None:
    result = price(H200, Work(held_s=None, requests=0, input_tokens=0, output_tokens=0))
    assert result.usd is None
    assert set(result.undefined.values()) == {"no request has ended"}


@pytest.mark.parametrize("field", ["gpu_hour_usd", "gpus"])
@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, "much", "2s", True, False, None])
def test_a_price_is_made_of_positive_numbers(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        HardwareCost.model_validate({"gpu_hour_usd": 1.92, field: value})
