"""Starting and ending the stand-in engine's server."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cliffwatch.errors import CliffwatchError
from services.engine import admin
from services.engine.assembly import Tuned
from services.engine.clock import ScaledClock
from services.engine.core import Core
from services.engine.drills.kinds import Fault
from services.engine.drills.process import Process, Running
from services.engine.engine import CATCH_UP_S, Engine
from services.engine.faces.face import Face
from services.engine.http import Connection
from services.engine.metrics import Metrics
from services.engine.observing import Observer
from services.engine.options import EngineOptions
from services.engine.profile import Profile
from services.engine.service import Identity, Service
from services.engine.serving import listen, serve_until_signalled
from services.engine.tokenizer import BLOCK_TOKENS


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that `cliffwatch engine` was asked for."""

    host: str
    port: int
    model: str
    profile: Profile
    speed: float
    max_model_len: int
    options: EngineOptions
    seed: int
    api_key: str | None
    replica: str
    face: Face
    version: str
    metrics_port: int | None  # None where metrics are on the API's port
    drill: Sequence[Fault] = ()
    admin: bool = False


def build_engine(settings: Settings, metrics: Metrics) -> Engine:
    """The engine of these settings, on the running event loop."""
    profile = settings.profile
    tuned = Tuned(profile, settings.options, seed=settings.seed)
    scheduler, kv = tuned.scheduler, tuned.scheduler.kv
    core = Core(scheduler, profile.intake, max_lag_s=CATCH_UP_S * settings.speed)
    config = {
        "block_size": BLOCK_TOKENS,
        "cache_dtype": "auto",
        "enable_prefix_caching": kv.sharing,
        "kv_cache_size_tokens": kv.capacity_blocks * BLOCK_TOKENS,
        "num_gpu_blocks": kv.capacity_blocks,
    }
    metrics.observe("config", tags={key: str(value) for key, value in config.items()})
    return Engine(tuned, core, ScaledClock(settings.speed), Observer(metrics, scheduler))


async def serve(settings: Settings, announce: Callable[[list[str]], None]) -> None:
    """Serve until SIGINT or SIGTERM; then drop every connection and return.

    `announce` is called with the addresses of the API and, where they have a port of their own, of the metrics.

    Raises:
        InputError: the host cannot be resolved, or the port must not be used.
        UnreachableError: the address is taken.
    """
    listeners = _listeners(settings)
    connections: set[Connection] = set()
    process = Process(settings.face, partial(_start, settings), settings.drill, connections)
    try:
        await serve_until_signalled(process.doors(listeners), announce, connections)
    finally:
        process.close()


def _start(settings: Settings, process: Process, version: str | None) -> Running:
    """A process that speaks a version; with None, the one that was asked for."""
    face, model, version = settings.face, settings.model, version or settings.version
    metrics = face.metrics(version, model, settings.max_model_len)
    engine = build_engine(settings, metrics)
    identity = Identity(
        model,
        settings.max_model_len,
        settings.profile.name,
        settings.seed,
        settings.api_key,
        version,
        settings.replica,
    )
    api = {**face.routes(version, model), **(admin.ROUTES if settings.admin else {})}
    return Running(
        engine,
        [
            Service(identity, engine, face, metrics, routes, process)
            for routes in (api, face.metrics_routes(version, model))
        ],
    )


def _listeners(settings: Settings) -> list[socket.socket]:
    """The API's, and that of the metrics where they have a port of their own."""
    listeners = [listen(settings.host, settings.port)]
    if settings.metrics_port is not None:
        try:
            listeners.append(listen(settings.host, settings.metrics_port, field="--metrics-port"))
        except CliffwatchError:
            listeners[0].close()
            raise
    return listeners
