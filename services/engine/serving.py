"""Listening, and serving until a signal says to end."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, cast

from cliffwatch.errors import InputError, UnreachableError
from services.engine.http import IDLE_S, Connection, Handler, Refusal


class Door(NamedTuple):
    """A listening socket, and who answers there."""

    listener: socket.socket
    handle: Handler
    refusal: Refusal
    open: Callable[[], bool] = lambda: True  # whether anybody is there


class Nobody(asyncio.Protocol):
    """Cuts a connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()


async def serve_until_signalled(
    doors: Sequence[Door], announce: Callable[[list[str]], None], connections: set[Connection]
) -> None:
    """Serve at each door, say their addresses, and return after SIGINT or SIGTERM with every connection dropped.

    Args:
        connections: all that are open, kept up to date.
    """
    loop = asyncio.get_running_loop()

    def come_in(door: Door) -> asyncio.Protocol:
        return Connection(door.handle, door.refusal, connections) if door.open() else Nobody()

    servers = [await loop.create_server(partial(come_in, door), sock=door.listener, backlog=1024) for door in doors]
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    announce([_address(door.listener) for door in doors])
    reaper = asyncio.create_task(_close_idle(connections))
    await ended.wait()
    reaper.cancel()
    for server in servers:
        server.close()
    for connection in list(connections):
        connection.abort()


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(host: str, port: int, *, field: str = "--port") -> socket.socket:
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
                "the port is already taken", field=field, value=port, allowed="a free port, or 0 for any"
            ) from error
        raise InputError(f"cannot listen: {error.strerror}", field=f"--host/{field}", value=f"{host}:{port}") from error
    return listener


async def _close_idle(connections: set[Connection]) -> None:
    """Close connections that wait too long for a request, or for its rest: byte by byte does not help."""
    while True:
        await asyncio.sleep(IDLE_S / 10)
        for connection in [each for each in connections if each.waits_longer_than(IDLE_S)]:
            connection.abort()
