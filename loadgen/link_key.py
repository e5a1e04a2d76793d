"""The shared key of a link: where it comes from, and the key pairs that both ends derive from it."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.utils import z85

from cliffwatch.errors import InputError

KEY_VARIABLE = "CLIFFWATCH_LINK_KEY"
FILE_VARIABLE = "CLIFFWATCH_LINK_KEY_FILE"
INSECURE_VARIABLE = "CLIFFWATCH_INSECURE_LINK"
KEY_HELP = f"File with the key that master and workers share (cliffwatch link-key makes one); else {KEY_VARIABLE}."

_MIN_CHARS = 32
_MIN_DIFFERENT_CHARS = 10
_MAX_BYTES = 4096
logger = logging.getLogger("cliffwatch.link")


@dataclass(frozen=True, slots=True)
class LinkKey:
    """One shared secret. Its text is random, so a plain hash is enough to derive from it."""

    text: str = field(repr=False)

    def pair(self, role: str) -> tuple[bytes, bytes]:
        """The long-term (public, secret) key pair of `role`, `master` or `worker`, in Z85."""
        seed = hashlib.blake2b(self.text.encode(), digest_size=32, person=f"link-{role}".encode()).digest()
        secret = z85.encode(seed)
        return zmq.curve_public(secret), secret


def new_key() -> LinkKey:
    """A key that nobody else has: 256 random bits."""
    return LinkKey(secrets.token_urlsafe(32))


def read_key(file: Path | None) -> LinkKey | None:
    """The key in `file`, or in the environment unless one is given; None where there is neither.

    Raises:
        InputError: a file that cannot be read, or a key that could be guessed.
    """
    if file is None:
        text = os.environ.get(KEY_VARIABLE, "")
        return _checked(text, KEY_VARIABLE) if text else None
    try:
        with file.open("rb") as opened:
            raw = opened.read(_MAX_BYTES + 1)
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
        text = raw.decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise InputError(f"cannot be read: {reason}", file=file, allowed="a file with one key as text") from error
    if mode & 0o077:
        logger.warning("%s may be read by others on this machine: chmod 600", file)
    return _checked(text, str(file))


def _checked(text: str, source: str) -> LinkKey:
    text = text.strip()
    long_enough = _MIN_CHARS <= len(text) <= _MAX_BYTES
    if not long_enough or len(set(text)) < _MIN_DIFFERENT_CHARS or not text.isascii() or len(text.split()) != 1:
        allowed = f"{_MIN_CHARS} random characters or more in one line: cliffwatch link-key"
        raise InputError("is no key of a link", field=source, allowed=allowed)  # its value is not shown
    if not zmq.has("curve"):
        raise InputError("cannot be used: this ZeroMQ was built without CURVE", field=source)
    return LinkKey(text)
