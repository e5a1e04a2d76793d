"""What goes wrong on the wire, in words."""

from __future__ import annotations

import errno
import socket
import ssl

from cliffwatch.errors import CliffwatchError


def is_alert(error: OSError) -> bool:
    """Whether the server sent a TLS alert: it may want a certificate of ours, and says so after the handshake."""
    return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")


_ADVICE = {
    errno.EMFILE: "this client ran out of file descriptors (raise `ulimit -n`)",
    errno.EADDRNOTAVAIL: "this client ran out of local ports (add workers on other hosts)",
}


def refusal(error: BaseException) -> str:
    """A sink's error in words: what came is not what it reads."""
    return str(error) if isinstance(error, CliffwatchError) else f"{type(error).__name__}: {error}"


def error_text(error: OSError) -> str:
    """What an operating system error means here, in words."""
    if isinstance(error, socket.gaierror):
        return f"the host name cannot be resolved: {error.strerror or error}"
    return _ADVICE.get(error.errno or 0) or (error.strerror or str(error)).lower()
