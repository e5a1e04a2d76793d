"""Engine profiles: what a real engine on real hardware was measured to do, as a few figures in a YAML file."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field

from cliffwatch.config import ConfigModel, load_config
from cliffwatch.errors import InputError
from cliffwatch.roofline.hardware import Dtype, load_hardware
from cliffwatch.roofline.model import load_model
from cliffwatch.roofline.step import Deployment, Parts
from cliffwatch.units import TokenCount
from services.engine.core import IntakeTime
from services.engine.step_time import StepTime

PROFILES = Path(__file__).parent / "profiles"
DEFAULT_PROFILE = "h200-llama3-8b"


class EngineLimits(ConfigModel):
    """What the measured engine was configured with."""

    max_model_len: Annotated[TokenCount, Field(ge=2)]
    max_num_seqs: int = Field(ge=1)
    token_budget: Annotated[TokenCount, Field(ge=1)]
    kv_cache_tokens: Annotated[TokenCount, Field(ge=16)]


class FitError(ConfigModel):
    """Relative errors of the fit on rows it did not see."""

    median: float = Field(ge=0)
    p95: float = Field(ge=0)
    n: int = Field(ge=1)


class Source(ConfigModel):
    """Where the figures come from, and how well they hold."""

    measured: str
    when: date
    engine: str
    hardware: str
    method: str
    errors: dict[str, FitError] = Field(default_factory=dict)


class NamedDeployment(ConfigModel):
    """Model and hardware by the names of their data files."""

    hardware: str
    model: str
    weights: Dtype = "bf16"
    cache: Dtype = "bf16"
    tensor_parallel: Parts = 1

    def resolve(self) -> Deployment:
        """The data sheets themselves. Raises InputError for a name that is not known."""
        sheets = {"hardware": load_hardware(self.hardware), "model": load_model(self.model)}
        return Deployment(**sheets, **self.model_dump(exclude=set(sheets)))


class Profile(ConfigModel):
    """One engine: its name, limits and time coefficients.

    Attributes:
        measured: false where the figures were worked out from data sheets, with the efficiencies of a measured profile.
        deployment: model and hardware by their data sheets, where both are known.
    """

    name: str
    model: str
    measured: bool = True
    deployment: NamedDeployment | None = None
    source: Source
    limits: EngineLimits
    intake: IntakeTime
    step_time: StepTime


def load_profile(name: str) -> Profile:
    """A profile by its name, or from a path ending in `.yaml`. Raises InputError that names the known ones."""
    if name.endswith((".yaml", ".yml")):
        return load_config(Path(name), Profile)
    known = sorted(path.stem for path in PROFILES.glob("*.yaml"))
    if name not in known:
        allowed = ", ".join(known) + ", or a path ending in .yaml"
        raise InputError("no such engine profile", field="--profile", value=name, allowed=allowed)
    return load_config(PROFILES / f"{name}.yaml", Profile)
