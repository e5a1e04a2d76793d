"""Clock offsets against simulated channels, whose true offset and delays are known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.stats.clock import ClockOffset, Exchange, clock_offset

DELAYS = st.tuples(*[st.integers(0, 10**10)] * 3)
OFFSETS = st.integers(-(10**18), 10**18)


def exchange(at_ns: int, offset_ns: int, out_ns: int, thought_ns: int, back_ns: int) -> Exchange:
    received = at_ns + out_ns
    answered = received + thought_ns
    return Exchange(at_ns, received + offset_ns, answered + offset_ns, answered + back_ns)


@given(OFFSETS, st.lists(DELAYS, min_size=1, max_size=12))
def test_the_truth_is_within_the_bound_however_unequal_the_two_ways(offset_ns, delays):
    exchanges = [exchange(at_ns * 10**9, offset_ns, *parts) for at_ns, parts in enumerate(delays)]
    found = clock_offset(exchanges)
    assert found is not None
    assert abs(found.offset_ns - offset_ns) <= found.bound_ns
    fastest_ns = min(one.returned_ns - one.sent_ns - (one.answered_ns - one.received_ns) for one in exchanges)
    assert found.bound_ns <= (fastest_ns + 1) // 2


def test_one_exchange_is_ntps_formula():
    # sent 100, there 10 later by a clock 1000 ahead, answered after 5, back after 30: round trip 40 without the 5
    assert clock_offset([Exchange(100, 1110, 1115, 145)]) == ClockOffset(990, 20)


def test_a_fast_way_out_and_a_fast_way_back_need_not_be_of_one_exchange():
    slow_back, slow_out = exchange(0, 500, 2, 0, 1000), exchange(5000, 500, 1000, 0, 4)
    found = clock_offset([slow_back, slow_out])
    assert found == ClockOffset(499, 3)


def test_without_an_answer_and_after_a_step_nothing_is_known():
    assert clock_offset([]) is None
    assert clock_offset([exchange(0, 0, 5, 0, 5), exchange(100, 10**9, 5, 0, 5)]) is None
