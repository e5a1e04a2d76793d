"""`cliffwatch engine route`: one address for several engines."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re

import typer
import uvloop

from cliffwatch.errors import InputError
from services.engine.router.policies import POLICIES, Replica
from services.engine.router.router import Router, refusal
from services.engine.serving import Door, listen, serve_until_signalled

MAX_REPLICAS = 256
_REPLICA = re.compile(r"(?:http://)?(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(?P<port>\d{1,5})/?")


def route(
    replicas: list[str] = typer.Argument(help="Engines to share the requests among, such as 127.0.0.1:8001."),
    policy: str = typer.Option("round-robin", help=f"Who gets a request: {', '.join(POLICIES)}."),
    host: str = typer.Option("127.0.0.1", help="Address to listen on."),
    port: int = typer.Option(8000, min=0, max=65535, help="Port to listen on; 0 takes a free one."),
) -> None:
    """Serve one address for several engines, and hand each request to one of them.

    A replica that does not answer /health gets none. Bodies, statuses and headers pass as they are, so that a
    replica may say by --replica who it is. Over plain HTTP: meant for replicas on this machine or a private network.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if policy not in POLICIES:
        raise InputError("no such policy", field="--policy", value=policy, allowed=", ".join(POLICIES))
    uvloop.run(_serve([_replica(each) for each in replicas], policy, host, port))


async def _serve(replicas: list[Replica], policy: str, host: str, port: int) -> None:
    addresses = [replica.address for replica in replicas]
    if len(replicas) > MAX_REPLICAS or len(set(addresses)) < len(addresses):
        allowed = f"at most {MAX_REPLICAS}, each once"
        raise InputError(
            "too many replicas, or one named twice", field="REPLICAS", value=len(replicas), allowed=allowed
        )
    listener = listen(host, port)
    router = Router(replicas, POLICIES[policy]())
    watch = asyncio.create_task(router.watch())
    try:
        await serve_until_signalled(
            [Door(listener, router.handle, refusal)],
            lambda own: typer.echo(f"router: {own[0]} {policy} over {', '.join(addresses)}"),
            set(),
        )
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
        router.close()


def _replica(text: str) -> Replica:
    found = _REPLICA.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise InputError("is no replica", field="REPLICAS", value=text, allowed="host:port or http://host:port")
    return Replica(f"{found['host']}:{found['port']}")
