"""One step of inference on the roofline: its operations, its bytes, the time they take.

A step is as long as the slower of its arithmetic and its memory traffic (Williams, Waterman and Patterson, "Roofline",
2009), each at the share of the data sheet that was measured to be reached. What the host takes to launch the kernels
goes on at the same time, and lasts longer only where it is not replaced by a recorded graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from cliffwatch.config import ConfigModel
from cliffwatch.errors import InputError
from cliffwatch.roofline.hardware import DTYPE_BYTES, Dtype, Hardware
from cliffwatch.roofline.model import LanguageModel

COMPUTED_IN: dict[Dtype, Dtype] = {"fp16": "fp16", "bf16": "bf16", "fp8": "fp8", "int8": "int8", "int4": "bf16"}
ACTIVATION_BYTES = 2
MEMORY_SHARE = 0.9
# What an engine keeps beside weights and cache: vLLM 0.24 took 2.05e9 bytes for an 8B, 2.3e9 for a 34B model (H200).
RESERVED_BYTES = 2.2e9


Parts = Annotated[int, Field(ge=1, le=64)]


class Deployment(ConfigModel):
    """A model on hardware: number formats of weights and cache, devices in tensor parallel."""

    hardware: Hardware
    model: LanguageModel
    weights: Dtype = "bf16"
    cache: Dtype = "bf16"
    tensor_parallel: Parts = 1

    @property
    def peak_flop_s(self) -> float:
        """Operations a second of all devices in the format that products are computed in. Raises InputError."""
        return self.hardware.peak_flop_s(COMPUTED_IN[self.weights]) * self.tensor_parallel

    @property
    def bandwidth_byte_s(self) -> float:
        """Bytes a second from the memory of all devices."""
        return self.hardware.bandwidth_byte_s * self.tensor_parallel

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights; embeddings and norms stay in 16 bits where the rest is quantised."""
        model = self.model
        layers = model.fixed_parameters + model.routed_parameters
        return layers * DTYPE_BYTES[self.weights] + (model.parameters - layers) * ACTIVATION_BYTES

    @property
    def cache_token_bytes(self) -> float:
        """Bytes of cache that one token fills, copies on several devices counted as often as they are."""
        copies = max(1.0, self.tensor_parallel / self.model.attention.cache_parts)
        return self.model.layers * self.model.attention.cache_elements * DTYPE_BYTES[self.cache] * copies

    @property
    def cache_tokens(self) -> int:
        """Tokens for which there is cache. Raises InputError where the weights leave no room."""
        room = self.tensor_parallel * (self.hardware.memory_bytes * MEMORY_SHARE - RESERVED_BYTES) - self.weight_bytes
        if room < self.cache_token_bytes:
            need = self.weight_bytes / (self.hardware.memory_bytes * MEMORY_SHARE - RESERVED_BYTES)
            raise InputError(
                f"{self.model.name} in {self.weights} ({self.weight_bytes / 1e9:.0f} GB) does not fit "
                f"{self.tensor_parallel} x {self.hardware.name}",
                field="tensor_parallel",
                value=self.tensor_parallel,
                allowed=f"{int(need) + 1} or more devices, or smaller weights",
            )
        return int(room / self.cache_token_bytes)

    @property
    def link_token_bytes(self) -> float:
        """Bytes that each device sends and receives a token: two all-reduces a layer, as a ring passes them."""
        parts = self.tensor_parallel
        return 2 * self.model.layers * 4 * (parts - 1) / parts * self.model.hidden * ACTIVATION_BYTES


@dataclass(frozen=True, slots=True)
class StepShape:
    """What one step holds.

    Attributes:
        prefill_tokens: prompt tokens computed.
        prefill_pairs: for those, the sum over tokens of the tokens before each.
        prefill_context_tokens: cached tokens of those prompts, read once.
        prompts: prompts whose last token is among them, so that a token is sampled.
        sequences: sequences that decode one token each.
        context_tokens: tokens in the caches of those sequences.
    """

    prefill_tokens: int = 0
    prefill_pairs: float = 0
    prefill_context_tokens: int = 0
    prompts: int = 0
    sequences: int = 0
    context_tokens: int = 0

    @classmethod
    def prompt(cls, tokens: int, *, cached_tokens: int = 0) -> StepShape:
        """A whole prompt, of which the first `cached_tokens` are in the cache."""
        new = tokens - cached_tokens
        return cls(new, new * (cached_tokens + new / 2), cached_tokens, 1)

    @property
    def tokens(self) -> int:
        """Tokens that pass the layers."""
        return self.prefill_tokens + self.sequences


@dataclass(frozen=True, slots=True)
class StepWork:
    """What a step costs: operations, and bytes moved between memory and chip, on all devices together."""

    matrix_flops: float
    attention_flops: float
    weight_bytes: float
    cache_bytes: float
    link_bytes: float

    @property
    def flops(self) -> float:
        """All operations."""
        return self.matrix_flops + self.attention_flops

    @property
    def bytes(self) -> float:
        """All bytes from and to memory."""
        return self.weight_bytes + self.cache_bytes


def work_of(deployment: Deployment, shape: StepShape) -> StepWork:
    """Operations and bytes of a step. Weights are read once however many tokens pass; activations are left out."""
    model = deployment.model
    sampled = shape.sequences + shape.prompts
    head_bytes = model.head_parameters * ACTIVATION_BYTES if sampled else 0
    cached = shape.context_tokens + shape.prefill_context_tokens + shape.tokens
    return StepWork(
        matrix_flops=2 * (model.layer_parameters_per_token * shape.tokens + model.head_parameters * sampled),
        attention_flops=model.layers
        * (
            model.attention.prefill_pair_flops * shape.prefill_pairs
            + model.attention.decode_pair_flops * shape.context_tokens
        ),
        weight_bytes=model.touched_parameters(shape.tokens) * DTYPE_BYTES[deployment.weights] + head_bytes,
        cache_bytes=cached * deployment.cache_token_bytes,
        link_bytes=deployment.link_token_bytes * shape.tokens,
    )


class Efficiency(ConfigModel):
    """How much of a data sheet an engine reaches, and what it spends beside: fitted to measurements.

    Attributes:
        matrix: share of the peak in products with weights.
        attention: share of the peak in attention.
        bandwidth: share of the memory bandwidth.
        kernel_layer_s: gaps between kernels, a layer, in a step replayed from a recorded graph.
        launch_layer_s: the host's time to launch a layer's kernels, in a step that is not.
        sequence_s: a decoding sequence's own share (sampling, bookkeeping).
    """

    matrix: float = Field(gt=0, le=1)
    attention: float = Field(gt=0, le=1)
    bandwidth: float = Field(gt=0, le=1)
    kernel_layer_s: float = Field(ge=0)
    launch_layer_s: float = Field(ge=0)
    sequence_s: float = Field(ge=0)


IDEAL = Efficiency(matrix=1, attention=1, bandwidth=1, kernel_layer_s=0, launch_layer_s=0, sequence_s=0)


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of a step's parts; `seconds` is the whole."""

    compute_s: float
    memory_s: float
    link_s: float
    overhead_s: float
    launch_s: float

    @property
    def seconds(self) -> float:
        """The slower of arithmetic and memory, then links and gaps; or the host's launching, where that is longer."""
        return max(self.launch_s, max(self.compute_s, self.memory_s) + self.link_s + self.overhead_s)

    @property
    def bound(self) -> Literal["compute", "memory", "launch"]:
        """What the step waits for."""
        if self.launch_s >= self.seconds:
            return "launch"
        return "compute" if self.compute_s > self.memory_s else "memory"


def step_times(
    deployment: Deployment, shape: StepShape, efficiency: Efficiency = IDEAL, *, graphs: bool = True
) -> StepTimes:
    """The time of a step. Steps with prefill are too varied to be recorded: their kernels are launched by the host.

    Args:
        graphs: whether steps that only decode replay a recorded graph.
    """
    work = work_of(deployment, shape)
    peak_flop_s, layers = deployment.peak_flop_s, deployment.model.layers
    recorded = graphs and not shape.prefill_tokens
    return StepTimes(
        compute_s=work.matrix_flops / (peak_flop_s * efficiency.matrix)
        + work.attention_flops / (peak_flop_s * efficiency.attention),
        memory_s=work.bytes / (deployment.bandwidth_byte_s * efficiency.bandwidth),
        link_s=work.link_bytes / deployment.hardware.interconnect_byte_s,
        overhead_s=(layers * efficiency.kernel_layer_s if recorded else 0.0) + efficiency.sequence_s * shape.sequences,
        launch_s=0.0 if recorded else layers * efficiency.launch_layer_s,
    )
