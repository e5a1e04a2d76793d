"""Addresses to listen on or to join, as people write them."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from cliffwatch.errors import InputError
from loadgen.origin import authority


def split_address(text: str, option: str, *, default_port: int) -> tuple[str, int]:
    """HOST[:PORT], with an IPv6 host in brackets when a port follows. Raises InputError."""
    host, colon, port = text.rpartition(":") if "]" in text or text.count(":") == 1 else (text, "", "")
    if "]" in text and not colon:
        host = text
    host = host.strip("[]")
    if not host or (colon and not (port.isdigit() and int(port) < 65536)):
        raise InputError("is not an address", field=option, value=text, allowed="HOST or HOST:PORT")
    return host, int(port) if colon else default_port


def check_free(*wanted: tuple[str, str, int]) -> None:
    """Find out whether every (option, host, port) can be had, all at once, without keeping any. Raises InputError."""
    asked: dict[int, str] = {}
    with ExitStack() as held:
        for option, host, port in wanted:
            try:
                held.enter_context(_listener("" if host == "*" else host, port))
            except OSError as error:
                said = (error.strerror or str(error)).partition(" (while attempting")[0]
                why = f"is {asked[port]}'s already" if port in asked else f"cannot be listened on: {said.lower()}"
                allowed = "a free address of this machine"
                raise InputError(why, field=option, value=authority(host, port), allowed=allowed) from error
            if port:
                asked[port] = option


def _listener(host: str, port: int) -> socket.socket:
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
