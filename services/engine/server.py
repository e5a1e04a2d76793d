"""Starting and ending the stand-in engine's server."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass

from cliffwatch.errors import InputError, UnreachableError
from services.engine.clock import ScaledClock
from services.engine.core import Core
from services.engine.engine import CATCH_UP_S, Engine
from services.engine.faces.face import Face
from services.engine.http import IDLE_S, Connection
from services.engine.kv_cache import KvCache
from services.engine.metrics import Metrics
from services.engine.observing import Observer
from services.engine.profile import Profile
from services.engine.scheduler import Limits, Scheduler
from services.engine.service import Identity, Service
from services.engine.tokenizer import BLOCK_TOKENS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that `cliffwatch engine` was asked for."""

    host: str
    port: int
    model: str
    profile: Profile
    speed: float
    max_model_len: int
    max_num_seqs: int
    seed: int
    api_key: str | None
    prefix_caching: bool
    replica: str
    face: Face
    version: str


def build_engine(settings: Settings, metrics: Metrics) -> Engine:
    """The engine of these settings, on the running event loop."""
    profile = settings.profile
    kv = KvCache(profile.limits.kv_cache_tokens // BLOCK_TOKENS, sharing=settings.prefix_caching)
    scheduler = Scheduler(Limits(profile.limits.token_budget, settings.max_num_seqs), kv, profile.step_time)
    core = Core(scheduler, profile.intake, max_lag_s=CATCH_UP_S * settings.speed)
    config = {
        "block_size": BLOCK_TOKENS,
        "cache_dtype": "auto",
        "enable_prefix_caching": kv.sharing,
        "kv_cache_size_tokens": kv.capacity_blocks * BLOCK_TOKENS,
        "num_gpu_blocks": kv.capacity_blocks,
    }
    metrics.observe("config", tags={key: str(value) for key, value in config.items()})
    return Engine(scheduler, core, ScaledClock(settings.speed), Observer(metrics, scheduler))


async def serve(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; then drop every connection and return.

    Raises:
        InputError: the host cannot be resolved, or the port must not be used.
        UnreachableError: the address is taken.
    """
    loop = asyncio.get_running_loop()
    listener = listen(settings.host, settings.port)
    face = settings.face
    metrics = face.metrics(settings.version, settings.model, settings.max_model_len)
    engine = build_engine(settings, metrics)
    identity = Identity(
        settings.model,
        settings.max_model_len,
        settings.profile.name,
        settings.seed,
        settings.api_key,
        settings.version,
        settings.replica,
    )
    service = Service(identity, engine, face, metrics, face.routes(settings.version, settings.model))
    connections: set[Connection] = set()
    server = await loop.create_server(
        lambda: Connection(service.handle, service.refusal, connections), sock=listener, backlog=1024
    )
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    host, port = listener.getsockname()[:2]
    announce(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    reaper = asyncio.create_task(_close_idle(connections))
    await ended.wait()
    reaper.cancel()
    server.close()
    for connection in list(connections):
        connection.abort()
    engine.close()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises InputError or UnreachableError."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot be resolved: {error}", field="--host", value=host) from error
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UnreachableError(
                "the port is already taken", field="--port", value=port, allowed="a free port, or 0 for any"
            ) from error
        raise InputError(f"cannot listen: {error.strerror}", field="--host/--port", value=f"{host}:{port}") from error
    return listener


async def _close_idle(connections: set[Connection]) -> None:
    """Close connections that wait too long for a request, or for its rest: byte by byte does not help."""
    while True:
        await asyncio.sleep(IDLE_S / 10)
        for connection in [each for each in connections if each.waits_longer_than(IDLE_S)]:
            connection.abort()
