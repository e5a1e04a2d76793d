"""Names of replicas as they come in headers: any text, any number of them."""

from __future__ import annotations

from cliffwatch.records.replicas import MAX_NAME_CHARS, MAX_REPLICAS, OTHER
from loadgen.replica_names import ReplicaNames


def test_names_are_read_whatever_the_case_of_the_header() -> None:
    names = ReplicaNames("X-Served-By")
    assert names.of({"x-served-by": "a", "server": "b"}) == "a"
    assert [names.of(headers) for headers in (None, {}, {"x-served-by": ""}, {"x-served-by": " \t"})] == [None] * 4


def test_names_are_bounded_in_length_and_number() -> None:
    names = ReplicaNames("r")
    assert names.of({"r": "\x1b[2J\x00pod"}) == "[2J pod"
    assert len(names.of({"r": "x" * 100_000}) or "") == MAX_NAME_CHARS
    seen = {names.of({"r": f"pod-{number}"}) for number in range(2 * MAX_REPLICAS)}
    assert len(seen) == MAX_REPLICAS - 2 + 1
    assert OTHER in seen
    assert names.of({"r": "pod-0"}) == "pod-0"
