from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.records.schema import Outcome, Phase, RequestRow
from loadgen.accounting import Board, Tally
from loadgen.messages import plain


class Nothing:
    def issued(self, request_id, intended_ns):
        pass

    def ended(self, row):
        pass


def row(request_id: int, outcome: Outcome = Outcome.OK, ttft_ms: int = 50) -> RequestRow:
    ok = outcome is Outcome.OK
    return RequestRow(
        request_id=request_id, worker=0, phase=Phase.MEASURED, endpoint="chat", model="m", batch=1, cache="none",
        input_tokens=1, max_output_tokens=1, intended_ns=0, sent_ns=1, ended_ns=10**9,
        first_token_ns=ttft_ms * 10**6 if ok else None, last_token_ns=10**9 if ok else None, outcome=outcome,
        error=None if ok else "why", output_tokens=3 if ok else None,
    )  # fmt: skip


@given(st.data())
def test_reports_that_repeat_get_lost_or_overtake_each_other_give_the_same_sum(data):
    outcomes = data.draw(st.lists(st.lists(st.sampled_from(list(Outcome)), max_size=20), min_size=1, max_size=3))
    messages, last = [], []
    for shard, some in enumerate(outcomes):
        tally = Tally("run", shard, Nothing())
        own = []
        for number, outcome in enumerate(some):
            tally.issued(number, 0)
            tally.ended(row(number, outcome))
            own.append(plain(tally.report()))
        own.append(plain(tally.report(closed=True)))
        last.append(own[-1])
        messages += own
    some = data.draw(st.lists(st.sampled_from(messages), max_size=30))  # any order, any number of times, some never
    board = Board("run")
    for message in [*some, *last, *some]:
        board.take(message)
    totals = board.totals()
    everything = [outcome for some in outcomes for outcome in some]
    assert totals.issued == len(everything) == totals.outcomes.total()
    assert totals.in_flight == 0
    assert totals.outcomes[Outcome.OK] == everything.count(Outcome.OK) == totals.sketches["ttft"].n
    assert totals.output_tokens == 3 * everything.count(Outcome.OK)


def test_other_runs_and_nonsense_are_ignored():
    board = Board("run")
    other = plain(Tally("other", 0, Nothing()).report())
    for message in (None, {}, [], {"run_id": "run"}, {**other, "run_id": "run", "seq": "x"}, other):
        assert board.take(message) is None
    assert (board.totals().issued, board.totals().rate) == (0, None)


def test_the_rate_is_what_each_worker_had_issued_when_it_spoke():
    board = Board("run")
    for shard, (count, elapsed_s) in enumerate([(30, 3.0), (20, 4.0)]):
        tally = Tally("run", shard, Nothing())
        for number in range(count):
            tally.issued(number, 0)
        board.take(plain(tally.report()), elapsed_s)
    assert board.totals().rate == 15


def test_a_dead_worker_sends_nothing_any_more_but_what_it_did_counts():
    board = Board("run")
    for shard, seconds in ((0, 10.0), (1, 4.0)):
        tally = Tally("run", shard, Nothing())
        for request_id in range(40):
            tally.issued(request_id, 0)
        board.take(plain(tally.report()), seconds)
    assert board.totals().rate == 4 + 10
    after = board.totals(dead={1})
    assert (after.rate, after.dead, after.issued, after.in_flight) == (4, 1, 80, 40)


def test_a_report_does_not_grow_with_the_traffic():
    tally = Tally("run", 0, Nothing())
    for number in range(5000):
        tally.issued(number, 0)
        tally.ended(row(number, ttft_ms=1 + number % 2000))
    assert len(repr(plain(tally.report()))) < 30_000
    percentile = tally.report().sketches["ttft"]
    assert sum(count for _, count in percentile["buckets"]) == 5000
