"""The pace of a closed loop: when each user begins, and when it sends its next request.

Users are numbered over the whole load and shared out, so that any number of workers runs the same users.
"""

from __future__ import annotations

import math

from cliffwatch.workload.arrival_parts import ConcurrencyArrivals
from cliffwatch.workload.chance import uniform

_NS_PER_S = 1e9


def first_start_ns(arrivals: ConcurrencyArrivals, user: int) -> int:
    """When a user sends its first request, since the start of the load.

    Users are spread evenly over one round (the pacing, or the think time where there is none), so that they do not
    fire together for as long as the server answers alike.
    """
    return round(user * (arrivals.pacing or arrivals.think_time) * _NS_PER_S / arrivals.users)


def joining_start_ns(arrivals: ConcurrencyArrivals, user: int, elapsed_ns: int) -> int:
    """When a user that begins to be run `elapsed_ns` after the start of the load sends its first request.

    At the start that is `first_start_ns`. A user that another worker takes over later keeps its place in the round.
    """
    first_ns = first_start_ns(arrivals, user)
    round_ns = round((arrivals.pacing or arrivals.think_time) * _NS_PER_S)
    if not round_ns or elapsed_ns - first_ns < round_ns:
        return first_ns
    return first_ns + math.ceil((elapsed_ns - first_ns) / round_ns) * round_ns


def next_start_ns(
    arrivals: ConcurrencyArrivals, seed: int, user: int, done: int, *, started_ns: int, ended_ns: int
) -> int:
    """When a user that has `done` requests, the last from `started_ns` to `ended_ns`, may send the next one.

    Pacing counts from start to start, the first included: answers of 0.4 s under a pacing of 1 s leave gaps of 1 s,
    not of 1.4 s. `started_ns` should be when the request was due, so that lateness does not add up.
    """
    paced_ns = started_ns + round(arrivals.pacing * _NS_PER_S)
    return max(paced_ns, ended_ns + round(think_s(arrivals, seed, user, done) * _NS_PER_S))


def think_s(arrivals: ConcurrencyArrivals, seed: int, user: int, done: int) -> float:
    """Seconds a user waits after its request number `done` ended: the same for the same seed, user and number."""
    if arrivals.think == "fixed" or not arrivals.think_time:
        return arrivals.think_time
    return -math.log1p(-uniform(seed, "think", user, done)) * arrivals.think_time
