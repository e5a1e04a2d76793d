"""Which replica gets a request. Pure: replicas' states in, one of them out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

LOAD_BOUND = 1.25  # a replica may have that many times its even share of requests before affinity gives way


@dataclass(slots=True)
class Replica:
    """One engine behind the router: `address` as `host:port`, requests `in_flight` to it."""

    address: str
    healthy: bool = True
    in_flight: int = 0


class Policy(Protocol):
    """Chooses among `replicas` (at least one) for a prompt that begins with `prefix`."""

    def __call__(self, replicas: Sequence[Replica], prefix: bytes) -> Replica: ...


class RoundRobin:
    """Each in turn."""

    def __init__(self) -> None:
        self._turn = 0

    def __call__(self, replicas: Sequence[Replica], prefix: bytes) -> Replica:  # noqa: ARG002
        self._turn += 1
        return replicas[(self._turn - 1) % len(replicas)]


class LeastLoaded:
    """The one with the fewest requests in flight; equals take turns."""

    def __init__(self) -> None:
        self._in_turn = RoundRobin()

    def __call__(self, replicas: Sequence[Replica], prefix: bytes) -> Replica:
        fewest = min(replica.in_flight for replica in replicas)
        return self._in_turn([replica for replica in replicas if replica.in_flight == fewest], prefix)


class PrefixAffine:
    """Equal prompt beginnings to the same replica, whose prefix cache then serves them.

    Rendezvous hashing: a replica that comes or goes moves only its own prompts. A replica over `LOAD_BOUND` times its
    even share is passed over for the next in the prompt's order (consistent hashing with bounded loads; Mirrokni,
    Thorup and Zadimoghaddam, 2018). Requests without a prompt go to the least loaded.
    """

    def __init__(self) -> None:
        self._otherwise = LeastLoaded()

    def __call__(self, replicas: Sequence[Replica], prefix: bytes) -> Replica:
        if not prefix:
            return self._otherwise(replicas, prefix)
        most = math.ceil(LOAD_BOUND * (sum(replica.in_flight for replica in replicas) + 1) / len(replicas))
        with_room = [replica for replica in replicas if replica.in_flight < most]
        return max(with_room, key=lambda replica: hashlib.blake2b(prefix + replica.address.encode()).digest())


POLICIES: dict[str, Callable[[], Policy]] = {
    "round-robin": RoundRobin,
    "least-loaded": LeastLoaded,
    "prefix-affine": PrefixAffine,
}
