"""The roofline against published counts, data sheets and steps worked out by hand."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cliffwatch.errors import InputError
from cliffwatch.roofline.data import load_all
from cliffwatch.roofline.hardware import Hardware, load_hardware
from cliffwatch.roofline.model import LanguageModel, load_model
from cliffwatch.roofline.step import Deployment, Efficiency, StepShape, step_times, work_of

MODELS = load_all("models", LanguageModel)
HARDWARE = load_all("hardware", Hardware)


def deployed(hardware: str, model: str, **options: object) -> Deployment:
    return Deployment.model_validate(
        {"hardware": load_hardware(hardware), "model": load_model(model), **options},
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_parameters_are_the_published_ones(model: LanguageModel) -> None:
    assert model.parameters == model.published_parameters


def test_a_mixture_of_experts_passes_its_published_active_parameters() -> None:
    assert load_model("deepseek-v2").active_parameters == pytest.approx(21e9, rel=0.02)
    dense = load_model("yi-34b")
    assert dense.active_parameters == dense.parameters


def test_the_data_files_are_the_ones_promised() -> None:
    assert {item.name for item in HARDWARE} == {"A10", "A100-40", "A100-80", "H100", "H200", "L4", "MI300X"}
    assert {model.name for model in MODELS} == {
        "llama-3-8b", "llama-3-70b", "qwen2-72b", "yi-34b", "deepseek-v2", "phi-3-mini",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("hardware", "units", "operations_a_clock", "clock_ghz", "tolerance"),
    [
        ("A10", 288, 256, 1.695, 0.001),
        ("A100-80", 432, 512, 1.41, 0.001),
        ("H200", 528, 1024, 1.83, 0.001),
        ("L4", 240, 256, 2.04, 0.04),  # the data sheet's round figure is below what the boost clock gives
        ("MI300X", 304, 2048, 2.1, 0.001),
    ],
)
def test_peaks_are_what_matrix_units_and_clock_give(
    hardware: str, units: int, operations_a_clock: int, clock_ghz: float, tolerance: float
) -> None:
    """Units x operations a clock in 16 bits x boost clock; eight bits twice as fast, four bits four times."""
    peaks = load_hardware(hardware).peak_tflops
    assert peaks["bf16"] == peaks["fp16"] == pytest.approx(units * operations_a_clock * clock_ghz / 1e3, rel=tolerance)
    for dtype, times in (("fp8", 2), ("int8", 2), ("int4", 4)):
        if dtype in peaks:
            assert peaks[dtype] == pytest.approx(times * peaks["bf16"], rel=0.003)


@pytest.mark.parametrize("thing", [*HARDWARE, *MODELS], ids=lambda thing: thing.name)
def test_a_figure_without_a_source_is_refused(thing: Hardware | LanguageModel) -> None:
    with pytest.raises(ValidationError, match="sources tell of"):
        type(thing).model_validate({**thing.model_dump(), "sources": thing.model_dump()["sources"][1:]})


def test_names_are_found_in_any_case_and_by_alias_and_others_are_refused() -> None:
    assert load_hardware("h200") is load_hardware("NVIDIA-H200")
    with pytest.raises(InputError, match="MI300X"):
        load_hardware("h900")
    with pytest.raises(InputError, match="phi-3-mini"):
        load_model("gpt-9")


@pytest.mark.parametrize(
    ("model", "kib"),
    [
        ("llama-3-8b", 128),
        ("llama-3-70b", 320),
        ("qwen2-72b", 320),
        ("yi-34b", 240),
        ("phi-3-mini", 384),
        ("deepseek-v2", 67.5),
    ],
)
def test_cache_bytes_of_a_token(model: str, kib: float) -> None:
    assert deployed("h200", model).cache_token_bytes == kib * 1024


def test_cache_room_is_what_a_real_engine_found() -> None:
    """vLLM 0.24 on an H200: 896,912 tokens beside Llama-3-8B, 262,800 beside Yi-34B."""
    assert deployed("h200", "llama-3-8b").cache_tokens == pytest.approx(896_912, rel=0.01)
    assert deployed("h200", "yi-34b").cache_tokens == pytest.approx(262_800, rel=0.01)


def test_weights_that_do_not_fit_are_refused_with_how_many_devices_would_do() -> None:
    with pytest.raises(InputError, match=r"does not fit 1 x H100.*allowed: 2 or more"):
        _ = deployed("h100", "llama-3-70b").cache_tokens
    assert deployed("h100", "llama-3-70b", tensor_parallel=4).cache_tokens > 100_000
    assert deployed("h100", "llama-3-70b", weights="int4").cache_tokens > 50_000


def test_formats_that_a_chip_has_no_units_for_are_refused() -> None:
    with pytest.raises(InputError, match="A100-80 has no matrix units"):
        _ = deployed("a100-80", "llama-3-8b", weights="fp8").peak_flop_s
    assert deployed("a100-80", "llama-3-8b", weights="int4").peak_flop_s == 312e12


def test_work_of_a_prompt_by_hand() -> None:
    """1000 tokens of Llama-3-8B: 2 x 6.979e9 a token and one head; 524,288 operations a pair of 500,000."""
    work = work_of(deployed("h200", "llama-3-8b"), StepShape.prompt(1000))
    layers = 8_030_261_248 - 2 * 128_256 * 4096 - 65 * 4096
    assert work.matrix_flops == 2 * (layers * 1000 + 128_256 * 4096)
    assert work.attention_flops == 524_288 * 500_000
    assert work.weight_bytes == 2 * (layers + 128_256 * 4096)
    assert work.cache_bytes == 1000 * 131_072


def test_a_decode_step_waits_for_memory_and_a_long_prompt_for_arithmetic() -> None:
    deployment = deployed("h200", "llama-3-8b")
    decode = step_times(deployment, StepShape(sequences=1, context_tokens=512))
    assert decode.bound == "memory"
    assert decode.seconds == pytest.approx((15.01e9 + 513 * 131_072) / 4.8e12, rel=1e-3)
    prompt = step_times(deployment, StepShape.prompt(8192))
    assert prompt.bound == "compute"
    assert prompt.seconds == pytest.approx((2 * 6.98e9 * 8192 + 524_288 * 8192**2 / 2) / 989.4e12, rel=0.002)


def test_experts_are_read_as_far_as_tokens_choose_them() -> None:
    """6 of 160 a token: 3.75 % for one, 1 - 0.9625 ** 64 = 91.3 % for 64."""
    model = load_model("deepseek-v2")
    assert model.touched_parameters(1) - model.fixed_parameters == pytest.approx(0.0375 * model.routed_parameters)
    touched = model.touched_parameters(64) - model.fixed_parameters
    assert touched == pytest.approx(0.9134 * model.routed_parameters, rel=1e-3)


def test_tensor_parallel_divides_time_and_pays_for_links() -> None:
    one, four = (
        step_times(deployed("h100", "llama-3-70b", tensor_parallel=parts), StepShape.prompt(2048)) for parts in (1, 4)
    )
    assert four.compute_s == pytest.approx(one.compute_s / 4)
    assert one.link_s == 0
    # Two all-reduces in each of 80 layers; a ring of four passes 1.5 x 2048 x 8192 x 2 bytes, there and back.
    assert four.link_s == pytest.approx(2 * 80 * 2 * 1.5 * 2048 * 8192 * 2 / 900e9)


def test_a_latent_cache_is_kept_by_every_device() -> None:
    assert deployed("h200", "deepseek-v2", tensor_parallel=8).cache_token_bytes == 8 * 67.5 * 1024
    assert deployed("h200", "llama-3-8b", tensor_parallel=8).cache_token_bytes == 128 * 1024
    assert deployed("h200", "llama-3-8b", tensor_parallel=16).cache_token_bytes == 256 * 1024


def test_without_graphs_the_host_holds_up_a_short_step_and_not_a_long_one() -> None:
    deployment = deployed("h200", "llama-3-8b")
    slow = Efficiency(matrix=0.6, attention=0.6, bandwidth=0.9, kernel_layer_s=4e-5, launch_layer_s=8e-4, sequence_s=0)
    decode = StepShape(sequences=1, context_tokens=512)
    assert step_times(deployment, decode, slow).launch_s == 0
    eager = step_times(deployment, decode, slow, graphs=False)
    assert (eager.bound, eager.seconds) == ("launch", pytest.approx(32 * 8e-4))
    assert step_times(deployment, StepShape.prompt(8192), slow).bound == "compute"
