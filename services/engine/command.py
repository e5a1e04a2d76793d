"""`cliffwatch engine`: serve the stand-in inference engine, and what else is done with it."""

from __future__ import annotations

import logging
import re

import typer
import uvloop

from cliffwatch.errors import InputError
from cliffwatch.units import parse_tokens
from services.engine.faces import FACES, face_named
from services.engine.faces.face import Face
from services.engine.profile import DEFAULT_PROFILE, load_profile
from services.engine.router.command import route
from services.engine.server import Settings, serve

MAX_SPEED = 1e6

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(route)


@app.callback(invoke_without_command=True)
def engine(
    ctx: typer.Context,
    host: str = typer.Option("127.0.0.1", help="Address to listen on."),
    port: int = typer.Option(8000, min=0, max=65535, help="Port to listen on; 0 takes a free one."),
    model: str = typer.Option("", help="Name of the served model; the profile's own unless given."),
    profile: str = typer.Option(DEFAULT_PROFILE, help="Measured profile to follow: its name, or a YAML file."),
    speed: float = typer.Option(1.0, help="How much faster than the measured engine: 10 makes every wait a tenth."),
    max_model_len: str = typer.Option("", help="Longest prompt and answer together, in tokens (such as 40k)."),
    max_num_seqs: int = typer.Option(0, min=0, help="Sequences in one batch; 0 takes the profile's."),
    prefix_caching: bool = typer.Option(True, help="Share the cache of equal prompt beginnings."),
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
) -> None:
    """Serve the stand-in inference engine: an OpenAI-compatible server with the latency of a measured one.

    It needs no GPU. /metrics is vLLM's, in real seconds as served at --speed.
    """
    if ctx.invoked_subcommand is not None:
        _refuse_options(ctx)
        return
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = _settings(
        host=host,
        port=port,
        model=model,
        profile_name=profile,
        speed=speed,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        prefix_caching=prefix_caching,
        seed=seed,
        api_key=api_key,
        replica=replica,
        face=face_named(face),
        version=engine_version,
        metrics_port=metrics_port,
    )
    uvloop.run(serve(settings, lambda addresses: _announce(addresses, settings.model)))


def _announce(addresses: list[str], model: str) -> None:
    api, *metrics = addresses
    typer.echo(f"engine: {api} model {model}" + "".join(f"\nmetrics: {address}/metrics" for address in metrics))


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
    profile_name: str,
    speed: float,
    max_model_len: str,
    max_num_seqs: int,
    prefix_caching: bool,
    seed: int,
    api_key: str,
    replica: str,
    face: Face,
    version: str,
    metrics_port: int,
) -> Settings:
    """Options checked against the profile. Raises InputError."""
    profile = load_profile(profile_name)
    if not 0 < speed <= MAX_SPEED:
        raise InputError("is out of range", field="--speed", value=speed, allowed=f"above 0, at most {MAX_SPEED:g}")
    try:
        length = parse_tokens(max_model_len) if max_model_len else profile.limits.max_model_len
    except ValueError as error:
        raise InputError(str(error), field="--max-model-len", value=max_model_len) from error
    if not re.fullmatch(r"[!-~]{0,100}", replica):
        raise InputError(
            "cannot name a replica", field="--replica", value=replica, allowed="printable ASCII, no blanks"
        )
    room = profile.limits.kv_cache_tokens
    if not 2 <= length <= room:
        allowed = f"2 to {room}, what the profile's cache holds"
        raise InputError("is out of range", field="--max-model-len", value=length, allowed=allowed)
    return Settings(
        host=host,
        port=port,
        model=model or profile.model,
        profile=profile,
        speed=speed,
        max_model_len=length,
        max_num_seqs=max_num_seqs or profile.limits.max_num_seqs,
        prefix_caching=prefix_caching,
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
        raise InputError(f"{title} has its metrics on the port of its API", field="--metrics-port", value=given)
    return face.metrics_port if given < 0 else given
