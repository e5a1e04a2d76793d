"""Addresses to listen on or to join, as people write them."""

from __future__ import annotations

import socket

from cliffwatch.errors import InputError


def split_address(text: str, option: str, *, default_port: int) -> tuple[str, int]:
    """HOST[:PORT], with an IPv6 host in brackets when a port follows. Raises InputError."""
    host, colon, port = text.rpartition(":") if "]" in text or text.count(":") == 1 else (text, "", "")
    if "]" in text and not colon:
        host = text
    host = host.strip("[]")
    if not host or (colon and not (port.isdigit() and int(port) < 65536)):
        raise InputError("is not an address", field=option, value=text, allowed="HOST or HOST:PORT")
    return host, int(port) if colon else default_port


def check_free(host: str, port: int, option: str) -> None:
    """Find out whether a port can be had, without keeping it. Raises InputError."""
    host = "" if host == "*" else host
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        said = (error.strerror or str(error)).partition(" (while attempting")[0]
        why = f"cannot be listened on: {said.lower()}"
        raise InputError(why, field=option, value=f"{host}:{port}", allowed="a free address of this machine") from error
