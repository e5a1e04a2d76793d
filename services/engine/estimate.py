"""A profile for hardware and a model that nobody measured: data sheets, at the efficiency of a measured engine.

What a measured profile takes for each kind of work is divided by what its data sheets would take at best; other data
sheets are then slowed down alike. Such a profile says that it is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass

from cliffwatch.errors import InputError
from cliffwatch.roofline.hardware import DTYPE_BYTES
from cliffwatch.roofline.step import ACTIVATION_BYTES, Deployment, Efficiency
from services.engine.profile import EngineLimits, NamedDeployment, Profile, Source
from services.engine.step_time import StepTime

FEWEST_CACHE_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Ideal:
    """What data sheets allow at best, in seconds.

    Attributes:
        weights_s: reading the weights that every token passes.
        routed_s: reading all routed experts.
        token_s: a prompt token's products with weights.
        pair_s: attention of a token with one earlier token.
        cache_s: reading one token's cache.
        link_s: passing one token's activations between devices.
    """

    weights_s: float
    routed_s: float
    token_s: float
    pair_s: float
    cache_s: float
    link_s: float


def ideal(deployment: Deployment) -> Ideal:
    """The slopes of a deployment's roofline."""
    model, width = deployment.model, DTYPE_BYTES[deployment.weights]
    bandwidth = deployment.bandwidth_byte_s
    return Ideal(
        weights_s=(model.fixed_parameters * width + model.head_parameters * ACTIVATION_BYTES) / bandwidth,
        routed_s=model.routed_parameters * width / bandwidth,
        token_s=2 * model.layer_parameters_per_token / deployment.peak_flop_s,
        pair_s=model.layers * model.attention.prefill_pair_flops / deployment.peak_flop_s,
        cache_s=deployment.cache_token_bytes / bandwidth,
        link_s=deployment.link_token_bytes / deployment.hardware.interconnect_byte_s,
    )


def efficiency_of(step_time: StepTime, deployment: Deployment) -> Efficiency:
    """What a measured engine reaches of its data sheets.

    The bandwidth is that of reading caches; what a decode step takes beyond reading the weights as fast is gaps between
    kernels. Raises InputError for figures that no such hardware could reach.
    """
    best, layers = ideal(deployment), deployment.model.layers
    shares = {
        "matrix": best.token_s / step_time.prefill_token_s,
        "attention": best.pair_s / step_time.attention_pair_s,
        "bandwidth": best.cache_s / step_time.context_token_s,
    }
    gaps_s = step_time.decode_base_s - best.weights_s / shares["bandwidth"]
    for name, share in shares.items():
        if share > 1:
            raise InputError("is faster than the data sheet allows", field=name, value=f"{share:.2f} of its peak")
    return Efficiency(
        **shares,
        kernel_layer_s=max(0.0, gaps_s) / layers,
        launch_layer_s=step_time.prefill_floor_s / layers,
        sequence_s=step_time.decode_sequence_s,
    )


def estimate_step_time(deployment: Deployment, efficiency: Efficiency, reference: StepTime) -> StepTime:
    """Coefficients of a deployment at this efficiency; shares that no data sheet has are the reference's."""
    best, layers = ideal(deployment), deployment.model.layers
    context_token_s = best.cache_s / efficiency.bandwidth
    read_s = (best.weights_s + best.routed_s) / efficiency.bandwidth
    launch_s = layers * efficiency.launch_layer_s
    return StepTime(
        decode_base_s=best.weights_s / efficiency.bandwidth + layers * efficiency.kernel_layer_s,
        decode_sequence_s=efficiency.sequence_s + best.link_s,
        context_token_s=context_token_s,
        repeated_token_s=context_token_s * reference.repeated_token_s / reference.context_token_s,
        prefill_floor_s=max(launch_s, read_s),
        prefill_token_s=best.token_s / efficiency.matrix + best.link_s,
        attention_pair_s=best.pair_s / efficiency.attention,
        eager_launch_s=launch_s * reference.eager_launch_s / reference.prefill_floor_s,
        routed_s=best.routed_s / efficiency.bandwidth,
        routed_share=deployment.model.feed_forward.routed_share,
    )


def estimate_profile(named: NamedDeployment, reference: Profile) -> Profile:
    """A profile worked out from data files.

    Raises InputError where a name is unknown, the weights do not fit, or `reference` says no data sheets of its own.
    """
    if reference.deployment is None:
        raise InputError("says no deployment, so its efficiency is not known", field="profile", value=reference.name)
    deployment = named.resolve()
    cache_tokens = deployment.cache_tokens
    if cache_tokens < FEWEST_CACHE_TOKENS:
        raise InputError(
            "leaves too little room for the cache",
            field="tensor_parallel",
            value=f"{cache_tokens} tokens",
            allowed=f"{FEWEST_CACHE_TOKENS} or more",
        )
    efficiency = efficiency_of(reference.step_time, reference.deployment.resolve())
    hardware, model = deployment.hardware, deployment.model
    return Profile(
        name=f"{hardware.name}-{model.name}".lower(),
        model=model.name,
        measured=False,
        deployment=named,
        source=Source(
            measured=f"nothing: estimated from data sheets at the efficiency of {reference.name}",
            when=reference.source.when,
            engine=f"as {reference.source.engine}; weights {named.weights}, cache {named.cache}",
            hardware=f"{named.tensor_parallel} x {hardware.name}: {hardware.source}",
            method=f"roofline; {model.source}",
        ),
        limits=EngineLimits(
            max_model_len=min(model.context_tokens, cache_tokens),
            max_num_seqs=reference.limits.max_num_seqs,
            token_budget=reference.limits.token_budget,
            kv_cache_tokens=cache_tokens,
        ),
        intake=reference.intake,
        step_time=estimate_step_time(deployment, efficiency, reference.step_time),
    )
