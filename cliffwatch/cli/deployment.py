"""The model on the hardware that was measured, as options name it."""

from __future__ import annotations

import typer

from cliffwatch.errors import InputError
from cliffwatch.roofline.hardware import Dtype, hardware_names, load_hardware
from cliffwatch.roofline.model import load_model, model_names
from cliffwatch.roofline.step import Deployment

HARDWARE = typer.Option("", help=f"What was measured: {', '.join(hardware_names())}.")
MODEL = typer.Option("", help=f"The model that it served: {', '.join(model_names())}.")
WEIGHTS = typer.Option("bf16", help="Format of the weights.")
KV_CACHE_DTYPE = typer.Option("bf16", help="Format of the key-value cache.")
TENSOR_PARALLEL = typer.Option(1, min=1, max=64, help="Devices that share the model.")


def deployment_of(hardware: str, model: str, weights: Dtype, cache: Dtype, tensor_parallel: int) -> Deployment:
    """What the options name. Raises InputError for hardware or a model that is not known, or not given."""
    for field, given, known in (("--hardware", hardware, hardware_names()), ("--model", model, model_names())):
        if not given:
            raise InputError("is needed", field=field, allowed=", ".join(known))
    return Deployment(
        hardware=load_hardware(hardware, field="--hardware"),
        model=load_model(model, field="--model"),
        weights=weights,
        cache=cache,
        tensor_parallel=tensor_parallel,
    )
