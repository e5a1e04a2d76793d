"""Addresses to listen on or to join, as people write them."""

from __future__ import annotations

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
