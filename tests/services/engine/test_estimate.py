"""Profiles worked out from data sheets: the way there and back, and one model predicted from another."""

from __future__ import annotations

import pytest

from cliffwatch.errors import InputError
from cliffwatch.roofline.hardware import load_hardware
from cliffwatch.roofline.step import StepShape, step_times
from services.engine.estimate import efficiency_of, estimate_profile, estimate_step_time
from services.engine.profile import DEFAULT_PROFILE, NamedDeployment, load_profile

REFERENCE = load_profile(DEFAULT_PROFILE)
assert REFERENCE.deployment is not None
DEPLOYMENT = REFERENCE.deployment.resolve()
EFFICIENCY = efficiency_of(REFERENCE.step_time, DEPLOYMENT)


def test_the_measured_deployment_estimated_is_the_measured_profile() -> None:
    back = estimate_step_time(DEPLOYMENT, EFFICIENCY, REFERENCE.step_time)
    for name, value in REFERENCE.step_time.model_dump().items():
        assert getattr(back, name) == pytest.approx(value), name


def test_shares_of_the_data_sheet_by_hand() -> None:
    """2 x 6.979e9 operations a token and 524,288 a pair at 989.4e12/s; 131,072 bytes at 4.8e12/s."""
    times = REFERENCE.step_time
    assert EFFICIENCY.matrix == pytest.approx(2 * 6.979e9 / 989.4e12 / times.prefill_token_s, rel=1e-3)
    assert EFFICIENCY.attention == pytest.approx(524_288 / 989.4e12 / times.attention_pair_s)
    assert EFFICIENCY.bandwidth == pytest.approx(131_072 / 4.8e12 / times.context_token_s)


def test_a_step_in_coefficients_is_the_step_on_the_roofline() -> None:
    """A lone decode step; what the two leave to each other is below a percent."""
    coefficients = REFERENCE.step_time.seconds(
        prefill_tokens=0, pairs=0, sequences=1, context_tokens=8192, repeated_tokens=0
    )
    roofline = step_times(DEPLOYMENT, StepShape(sequences=1, context_tokens=8192), EFFICIENCY)
    assert coefficients == pytest.approx(roofline.seconds, rel=0.01)


def test_a_larger_model_is_predicted_from_its_data_file() -> None:
    """Yi-34B on the same H200, measured: ITL 18.77 ms at 512 to 768 tokens, 262,800 tokens of cache."""
    profile = estimate_profile(NamedDeployment(hardware="H200", model="yi-34b"), REFERENCE)
    itl_s = profile.step_time.seconds(prefill_tokens=0, pairs=0, sequences=1, context_tokens=640, repeated_tokens=0)
    assert itl_s == pytest.approx(0.01877, rel=0.05)
    assert profile.limits.kv_cache_tokens == pytest.approx(262_800, rel=0.01)
    assert not profile.measured
    assert "estimated" in profile.source.measured


def test_experts_are_a_term_of_their_own() -> None:
    profile = estimate_profile(NamedDeployment(hardware="H200", model="deepseek-v2", tensor_parallel=8), REFERENCE)
    assert profile.step_time.routed_share == 6 / 160
    routed_bytes = 59 * 160 * 3 * 5120 * 1536 * 2
    assert profile.step_time.routed_s == pytest.approx(routed_bytes / (8 * 4.8e12) / EFFICIENCY.bandwidth)


def test_faster_than_the_data_sheet_is_refused() -> None:
    slow = DEPLOYMENT.model_copy(update={"hardware": load_hardware("L4")})
    with pytest.raises(InputError, match="matrix: is faster than the data sheet allows"):
        efficiency_of(REFERENCE.step_time, slow)


def test_a_reference_without_data_sheets_is_refused() -> None:
    with pytest.raises(InputError, match="says no deployment"):
        estimate_profile(
            NamedDeployment(hardware="L4", model="phi-3-mini"), REFERENCE.model_copy(update={"deployment": None})
        )
