"""Chance by name and number: the same for the same seed on whatever worker, in whatever order it is asked for."""

from __future__ import annotations

import hashlib


def uniform(seed: int, *key: object) -> float:
    """A number in [0, 1), independent for each key."""
    digest = hashlib.blake2b("/".join(map(str, (seed, *key))).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) / 2**53
