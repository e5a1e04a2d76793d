"""`cliffwatch engine`: serve the stand-in inference engine, and what else is done with it."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path

import typer
import uvloop

from cliffwatch.errors import InputError
from cliffwatch.roofline.hardware import Dtype
from cliffwatch.roofline.model import model_names
from services.engine.assembly import model_length
from services.engine.drills.drill import load_drill
from services.engine.drills.kinds import Fault
from services.engine.estimate import estimate_profile
from services.engine.faces import FACES, face_named
from services.engine.faces.face import Face
from services.engine.options import EngineOptions, takes_engine_options
from services.engine.profile import DEFAULT_PROFILE, NamedDeployment, Profile, load_profile
from services.engine.router.command import route
from services.engine.server import Settings, serve
from services.engine.simulate_command import simulate

MAX_SPEED = 1e6
BF16: Dtype = "bf16"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(route)
app.command()(simulate)


@app.callback(invoke_without_command=True)
@takes_engine_options
def engine(
    ctx: typer.Context,
    host: str = typer.Option("127.0.0.1", help="Address to listen on."),
    port: int = typer.Option(8000, min=0, max=65535, help="Port to listen on; 0 takes a free one."),
    model: str = typer.Option(
        "", help="Name of the served model; the profile's own unless given. With --hardware, the model of the estimate."
    ),
    profile: str = typer.Option(DEFAULT_PROFILE, help="Measured profile to follow: its name, or a YAML file."),
    hardware: str = typer.Option(
        "", help="Estimate a profile for this hardware and --model from data sheets, at the efficiency of --profile."
    ),
    weights: Dtype = typer.Option(BF16, help="Format of the weights, for --hardware."),
    kv_cache_dtype: Dtype = typer.Option(BF16, help="Format of the key-value cache, for --hardware."),
    tensor_parallel: int = typer.Option(1, min=1, max=64, help="Devices that share the model, for --hardware."),
    speed: float = typer.Option(1.0, help="How much faster than the measured engine: 10 makes every wait a tenth."),
    seed: int = typer.Option(0, help="Seed of the answers' texts."),
    replica: str = typer.Option("", help="Name of this replica; every answer says it in the header X-Served-By."),
    face: str = typer.Option("vllm", help="The server it looks like: " + ", ".join(FACES) + "."),
    engine_version: str = typer.Option(
        "", help="The version that the face speaks (such as 0.11); its usual one unless given."
    ),
    metrics_port: int = typer.Option(
        -1,
        min=-1,
        max=65535,
        help="Port of the metrics, for a face that has one; -1 takes its usual one, 0 a free one.",
    ),
    api_key: str = typer.Option(
        "", envvar="CLIFFWATCH_ENGINE_API_KEY", help="Bearer token that /v1 asks for.", show_envvar=True
    ),
    drill: str = typer.Option("", metavar="FILE", help="Faults to live through: a YAML file of kinds and times."),
    admin: bool = typer.Option(False, help="Answer /admin to clients on this machine: faults on demand."),
    *,
    options: EngineOptions,
) -> None:
    """Serve the stand-in inference engine: an OpenAI-compatible server with the latency of a measured one.

    It needs no GPU. /metrics is vLLM's, in real seconds as served at --speed.
    """
    if ctx.invoked_subcommand is not None:
        _refuse_options(ctx)
        return
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    named = _deployment(hardware, model, weights, kv_cache_dtype, tensor_parallel)
    followed = load_profile(profile)
    settings = _settings(
        host=host,
        port=port,
        model="" if named else model,
        profile=estimate_profile(named, followed) if named else followed,
        speed=speed,
        options=options,
        seed=seed,
        api_key=api_key,
        replica=replica,
        face=face_named(face),
        version=engine_version,
        metrics_port=metrics_port,
    )
    settings = replace(settings, drill=_drill(drill, settings.face), admin=admin)
    uvloop.run(serve(settings, lambda addresses: _announce(addresses, settings)))


def _drill(path: str, face: Face) -> tuple[Fault, ...]:
    """Raises InputError, also for a version that the face cannot speak."""
    faults = load_drill(Path(path)) if path else ()
    for index, fault in enumerate(faults):
        if fault.next_version is not None:
            face.spoken(fault.next_version, field=f"{path}: faults[{index}].version")
    return faults


def _announce(addresses: list[str], settings: Settings) -> None:
    api, *metrics = addresses
    typer.echo(
        f"engine: {api} model {settings.model}" + "".join(f"\nmetrics: {address}/metrics" for address in metrics)
    )
    if not settings.profile.measured:
        typer.echo(f"profile {settings.profile.name}: estimated, not measured", err=True)


def _deployment(
    hardware: str, model: str, weights: Dtype, cache: Dtype, tensor_parallel: int
) -> NamedDeployment | None:
    """What is to be estimated; None where a measured profile is followed. Raises InputError."""
    if hardware:
        if not model:
            raise InputError("is needed with --hardware", field="--model", allowed=", ".join(model_names()))
        return NamedDeployment(
            hardware=hardware, model=model, weights=weights, cache=cache, tensor_parallel=tensor_parallel
        )
    for option, given in (
        ("--weights", weights != BF16),
        ("--kv-cache-dtype", cache != BF16),
        ("--tensor-parallel", tensor_parallel != 1),
    ):
        if given:
            raise InputError(
                "changes an estimate, and a measured profile is followed", field=option, allowed="with --hardware"
            )
    return None


def _refuse_options(ctx: typer.Context) -> None:
    """Options of serving before a command would be dropped without a word."""
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "--" + name.replace("_", "-")
            raise InputError(
                "is for serving", field=option, allowed=f"`engine` alone, or behind `{ctx.invoked_subcommand}`"
            )


def _settings(
    *,
    host: str,
    port: int,
    model: str,
    profile: Profile,
    speed: float,
    options: EngineOptions,
    seed: int,
    api_key: str,
    replica: str,
    face: Face,
    version: str,
    metrics_port: int,
) -> Settings:
    """Options checked against the profile. Raises InputError."""
    if not 0 < speed <= MAX_SPEED:
        raise InputError("is out of range", field="--speed", value=speed, allowed=f"above 0, at most {MAX_SPEED:g}")
    if not re.fullmatch(r"[!-~]{0,100}", replica):
        raise InputError(
            "cannot name a replica", field="--replica", value=replica, allowed="printable ASCII, no blanks"
        )
    return Settings(
        host=host,
        port=port,
        model=model or profile.model,
        profile=profile,
        speed=speed,
        max_model_len=model_length(profile, options),
        options=options,
        seed=seed,
        api_key=api_key or None,
        replica=replica,
        face=face,
        version=face.spoken(version),
        metrics_port=_metrics_port(face, metrics_port),
    )


def _metrics_port(face: Face, given: int) -> int | None:
    if face.metrics_port is None and given >= 0:
        title = face.engine.title
        separate = ", ".join(name for name, other in FACES.items() if other.metrics_port is not None)
        raise InputError(
            f"{title} has its metrics on the port of its API",
            field="--metrics-port", value=given, allowed=f"with --face {separate}, or left out",
        )  # fmt: skip
    return face.metrics_port if given < 0 else given
