"""Judging hand-made runs: every right value here was worked out on paper from the rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from cliffwatch.errors import InputError
from cliffwatch.records.manifest import Cost, RunState
from cliffwatch.records.schema import PLANNED, Outcome, Phase, RequestRow
from cliffwatch.slo.judge import judge
from cliffwatch.slo.judgement import Judgement, Status
from cliffwatch.slo.sli import Clock
from cliffwatch.slo.spec import SloFile, parse_slo
from tests.slo.rows import SECOND, refused, run_of, served


def slo(*objectives: str, extra: str = "") -> SloFile:
    lines = "\n".join(f"  - {{{one}}}" for one in objectives)
    return parse_slo(f"name: test\n{extra}\nobjectives:\n{lines}", source="test")


TTFT = "sli: ttft, threshold: 1s, target: 95%"
AVAILABLE = "sli: availability, target: 99.9%"


def counts(judgement: Judgement, index: int = 0) -> tuple[int, int, int]:
    one = judgement.objectives[index]
    return one.n, one.good, one.bad


def test_attainment_with_its_interval_and_percentiles(tmp_path: Path) -> None:
    rows = [served(number, ttft=0.5 if number < 190 else 1.5) for number in range(200)]
    one = judge(run_of(tmp_path / "run", rows), slo(TTFT)).objectives[0]
    assert (one.n, one.good, one.bad, one.attainment) == (200, 190, 10, 0.95)
    # Wilson, z = 1.959964: centre (0.95 + z²/400) / (1 + z²/200), half width z sqrt(p q / n + z²/4n²) / (1 + z²/n)
    assert one.low == pytest.approx(0.91043, abs=1e-5)
    assert one.high == pytest.approx(0.97262, abs=1e-5)
    assert (one.status, one.confident) == (Status.MET, False)
    # 200 samples: P95 lies at 0.95 * 199 = 189.05, 5 % of the way from 0.5 to 1.5
    assert one.observed["p95"].value == pytest.approx(0.55)
    assert (one.observed["p95"].n, one.observed["p95"].few) == (200, False)
    assert one.observed["p99"].value == pytest.approx(1.5)
    assert one.observed["p99"].few


def test_exactly_the_threshold_is_good(tmp_path: Path) -> None:
    rows = [served(0, ttft=1.0), served(1, ttft=1.000001)]
    assert counts(judge(run_of(tmp_path / "run", rows), slo(TTFT))) == (2, 1, 1)


def test_open_loop_runs_count_from_the_intended_time(tmp_path: Path) -> None:
    rows = [served(number, ttft=0.5, lag=0.8) for number in range(3)]
    open_loop = judge(run_of(tmp_path / "open", rows), slo(TTFT, TTFT + ", clock: sent"))
    assert [one.good for one in open_loop.objectives] == [0, 3]
    assert [one.clock for one in open_loop.objectives] == [Clock.INTENDED, Clock.SENT]
    closed_loop = judge(run_of(tmp_path / "closed", rows, open_loop=False), slo(TTFT))
    assert closed_loop.objectives[0].good == 3
    assert closed_loop.objectives[0].clock is Clock.SENT


def test_an_objective_of_a_bucket_sees_only_its_requests(tmp_path: Path) -> None:
    rows = [
        served(0, ttft=0.5, input_tokens=1024),
        served(1, ttft=3.0, input_tokens=8191),
        served(2, ttft=3.0, input_tokens=8192),
        served(3, ttft=3.0, input_tokens=32768),
        served(4, ttft=9.0, input_tokens=32769),
    ]
    long = "sli: ttft, threshold: 6s, target: 95%, input_tokens: {min: 8k, max: 32k}"
    short = "sli: ttft, threshold: 1s, target: 95%, input_tokens: {max: 4k}"
    result = judge(run_of(tmp_path / "run", rows), slo(long, short))
    assert counts(result, 0) == (2, 2, 0)
    assert counts(result, 1) == (1, 1, 0)
    # every request meets what applies to it; those in no bucket are promised nothing
    assert (result.goodput.good, result.goodput.n) == (5, 5)


def test_warm_up_and_cold_start_are_not_judged(tmp_path: Path) -> None:
    rows = [served(0, ttft=9, phase=Phase.COLD), served(1, ttft=9, phase=Phase.WARMUP), served(2), served(3)]
    reader = run_of(tmp_path / "run", rows)
    assert counts(judge(reader, slo(TTFT))) == (2, 2, 0)
    assert judge(reader, slo(TTFT)).goodput.n == 2
    assert counts(judge(reader, slo(TTFT), phase=Phase.COLD)) == (1, 0, 1)
    assert counts(judge(reader, slo(TTFT), phase=None)) == (4, 2, 2)


def test_time_outs_are_bad_for_latency_once_they_waited_the_threshold(tmp_path: Path) -> None:
    rows = [
        served(0),
        refused(1, Outcome.TIMEOUT_FIRST_TOKEN, waited=1.0),  # as long as the threshold: a miss
        refused(2, Outcome.TIMEOUT_FIRST_TOKEN, waited=0.9),  # could still have made it: unknown
        refused(3, Outcome.TIMEOUT_CONNECT, waited=10, sent=False),
        refused(4, Outcome.STALLED, waited=30, first_token_ns=4_100_000_000),  # its TTFT was 100 ms, its E2E is a miss
        refused(5, Outcome.HTTP_5XX, waited=5),
        refused(6, Outcome.CANCELLED, waited=5),
        refused(7, Outcome.LATE, waited=5, sent=False),
        refused(8, Outcome.LOST),
        refused(9, Outcome.CANCELLED, waited=5, error=PLANNED, cancel_after_s=5.0),
    ]
    result = judge(run_of(tmp_path / "run", rows), slo(TTFT, "sli: e2e, threshold: 20s, target: 95%", AVAILABLE))
    assert counts(result, 0) == (3, 1, 2)
    assert result.objectives[0].censored == 2
    assert counts(result, 1) == (2, 1, 1)
    assert counts(result, 2) == (6, 1, 5)
    assert (result.goodput.n, result.goodput.good) == (
        8,
        1,
    )  # all but the one never sent and the user who left


def test_what_was_known_to_be_late_before_the_failure_is_bad(tmp_path: Path) -> None:
    def broken(number: int, outcome: Outcome, *, first: float, last: float, **changes: Any) -> RequestRow:
        start = number * SECOND
        stamps = {"first_token_ns": start + round(first * SECOND), "last_token_ns": start + round(last * SECOND)}
        return refused(
            number, outcome, **({"waited": last, "first_answer_ns": stamps["first_token_ns"]} | stamps | changes)
        )

    rows = [
        served(0),
        broken(1, Outcome.STALLED, first=1.5, last=2, waited=30),  # TTFT known and late; E2E at least 30 s
        broken(2, Outcome.TRUNCATED, first=1.0, last=20.5),  # TTFT on the threshold; E2E over 20.5 s
        broken(3, Outcome.STREAM_ERROR, first=1.000001, last=5),  # TTFT late; E2E unknown
        broken(4, Outcome.TIMEOUT_TOTAL, first=0.1, last=19, waited=19.9),  # in time as far as it got: neither way
        broken(5, Outcome.CANCELLED, first=5, last=25),  # ended by us
        broken(6, Outcome.TRUNCATED, first=2, last=3, first_answer_ns=None, itl_s=5.0),  # only reasoning came
        broken(7, Outcome.STREAM_ERROR, first=1, last=20),  # exactly the thresholds: in time
    ]
    asked = [f"sli: {sli}, threshold: {threshold}, target: 95%" for sli, threshold in
             (("ttft", "1s"), ("e2e", "20s"), ("ttfa", "1s"), ("itl", "50ms"))]  # fmt: skip
    result = judge(run_of(tmp_path / "run", rows), slo(*asked, AVAILABLE))
    assert counts(result, 0) == (4, 1, 3)  # bad: 1, 3, 6
    assert counts(result, 1) == (3, 1, 2)  # bad: 1, 2
    assert counts(result, 2) == (3, 1, 2)  # bad: 1, 3
    assert counts(result, 3) == (1, 1, 0)
    assert counts(result, 4) == (7, 1, 6)
    assert [one.censored for one in result.objectives] == [0, 1, 0, 0, 0]
    assert (result.goodput.n, result.goodput.good) == (8, 1)


def test_what_was_late_counts_by_the_objectives_clock(tmp_path: Path) -> None:
    """Sent 0.8 s late, first token 0.5 s after that, then broken off: 1.3 s from when it was due."""
    row = refused(0, Outcome.TRUNCATED, sent_ns=800_000_000, first_token_ns=1_300_000_000, waited=2)
    result = judge(run_of(tmp_path / "run", [row]), slo(TTFT, TTFT + ", clock: sent"))
    assert counts(result, 0) == (1, 0, 1)
    assert counts(result, 1) == (0, 0, 0)


def test_client_errors_are_no_bad_event_of_availability_unless_chosen(tmp_path: Path) -> None:
    rows = [served(0), refused(1, Outcome.HTTP_4XX), refused(2, Outcome.HTTP_429)]
    reader = run_of(tmp_path / "run", rows)
    assert counts(judge(reader, slo(AVAILABLE))) == (2, 1, 1)
    assert counts(judge(reader, slo(AVAILABLE, extra="count_client_errors: true"))) == (3, 1, 2)


def test_figures_that_cannot_exist_neither_help_nor_harm(tmp_path: Path) -> None:
    """300 successes of which two have no output token: requests all the same, but not in per-token figures."""
    rows = [served(number) for number in range(298)] + [served(number, itl=None, tokens=0) for number in (298, 299)]
    objectives = slo("sli: itl, threshold: 50ms, target: 95%", "sli: ntpot, threshold: 1s, target: 95%", AVAILABLE)
    result = judge(run_of(tmp_path / "run", rows), objectives)
    assert counts(result, 0) == (298, 298, 0)
    assert counts(result, 1) == (298, 298, 0)
    assert counts(result, 2) == (300, 300, 0)
    assert result.objectives[0].unknown == 0
    assert result.goodput.good == 300


def test_a_figure_that_should_exist_but_is_unknown_is_not_zero(tmp_path: Path) -> None:
    rows = [served(0), served(1, itl=None), served(2, first_token_ns=None)]
    result = judge(run_of(tmp_path / "run", rows), slo(TTFT, "sli: itl, threshold: 50ms, target: 95%"))
    assert [one.unknown for one in result.objectives] == [1, 1]
    assert counts(result, 0) == (2, 2, 0)
    assert result.goodput.good == 1


def test_tokens_per_time_come_from_the_servers_count(tmp_path: Path) -> None:
    """12 tokens 20 ms apart are 220 ms / 11 a token, however few words the text has when it is counted again."""
    rows = [served(number, tokens=12, itl=0.02) for number in range(20)]
    one = judge(run_of(tmp_path / "run", rows), slo("sli: tpot, threshold: 21ms, target: 50%")).objectives[0]
    assert one.good == 20
    assert one.observed["p50"].value == pytest.approx(0.020)


def test_failures_stay_out_of_the_percentiles_of_successes(tmp_path: Path) -> None:
    rows = [served(number, ttft=0.1) for number in range(8)]
    rows += [refused(number, Outcome.TIMEOUT_FIRST_TOKEN, waited=30) for number in (8, 9)]
    result = judge(run_of(tmp_path / "run", rows), slo(TTFT, AVAILABLE))
    ttft = result.objectives[0]
    assert ttft.observed["p50"].value == pytest.approx(0.1)
    assert ttft.observed["p50"].n == 8
    assert ttft.observed["p99"].value is None  # eight samples say nothing about one in a hundred
    assert counts(result) == (10, 8, 2)
    # 8 good in (9 + 30) s from the first's start to the last time-out
    assert result.goodput.per_s == pytest.approx(8 / 39)


def test_nothing_succeeded_is_missed_and_has_no_number(tmp_path: Path) -> None:
    rows = [refused(number, Outcome.CONNECT, sent=False) for number in range(20)]
    result = judge(run_of(tmp_path / "run", rows), slo(TTFT, extra="cost: {gpu_hour_usd: 2}"))
    one = result.objectives[0]
    assert (one.n, one.attainment, one.low, one.status) == (0, None, None, Status.TOO_FEW_DATA)
    assert {quantile.value for quantile in one.observed.values()} == {None}
    assert result.status is Status.MISSED
    assert result.reason == "no request succeeded, 20 failed"
    assert result.goodput.ratio == 0
    assert result.price is not None
    assert result.price.usd_per_request is None
    assert "NaN" not in result.model_dump_json()
    assert judge(run_of(tmp_path / "other", rows), slo(AVAILABLE)).objectives[0].status is Status.MISSED


def test_an_empty_run_has_too_few_data(tmp_path: Path) -> None:
    result = judge(run_of(tmp_path / "run", []), slo(TTFT, AVAILABLE, extra="cost: {gpu_hour_usd: 2}"))
    assert result.status is Status.TOO_FEW_DATA
    assert result.goodput.ratio is None
    assert result.goodput.per_s is None
    assert result.price is not None
    assert result.price.usd is None


def test_goodput_needs_every_objective(tmp_path: Path) -> None:
    rows = [served(0, ttft=2, itl=0.01), served(1, ttft=0.1, itl=0.2), served(2), served(3)]
    result = judge(run_of(tmp_path / "run", rows), slo(TTFT, "sli: itl, threshold: 50ms, target: 95%"))
    assert [one.good for one in result.objectives] == [3, 3]
    assert (result.goodput.good, result.goodput.ratio) == (2, 0.5)


def test_cost_of_the_slo_file_comes_before_the_runs(tmp_path: Path) -> None:
    # the last answer's first token at 3.1 s, ten more at 20 ms: held for 3.3 s
    reader = run_of(tmp_path / "run", [served(number) for number in range(4)], cost=Cost(gpu_hour_usd=36))
    own = judge(reader, slo(TTFT)).price
    assert own is not None
    assert own.usd == pytest.approx(3.3 * 36 / 3600)
    assert own.usd_per_request == pytest.approx(3.3 * 36 / 3600 / 4)
    assert own.usd_per_million_output_tokens == pytest.approx(3.3 * 36 / 3600 / 44 * 1e6)
    given = judge(reader, slo(TTFT, extra="cost: {gpu_hour_usd: 36, gpus: 2}")).price
    assert given is not None
    assert given.usd == pytest.approx(2 * 3.3 * 36 / 3600)


def test_a_runs_own_price_that_is_none_is_refused(tmp_path: Path) -> None:
    reader = run_of(tmp_path / "run", [served(0)], cost=Cost(gpu_hour_usd=0))
    with pytest.raises(InputError, match=r"manifest\.json"):
        judge(reader, slo(TTFT))


def test_tokens_that_the_server_did_not_count_are_estimated_or_unknown(tmp_path: Path) -> None:
    cost = "cost: {gpu_hour_usd: 36}"
    built = [served(0, server_input_tokens=None, built_input_tokens=1000), served(1)]
    price = judge(run_of(tmp_path / "built", built), slo(TTFT, extra=cost)).price
    assert price is not None
    assert (price.work.input_tokens, price.work.estimated) == (2024, True)
    unknown = [served(0, server_input_tokens=None, built_input_tokens=None), served(1)]
    price = judge(run_of(tmp_path / "unknown", unknown), slo(TTFT, extra=cost)).price
    assert price is not None
    assert price.work.input_tokens is None
    assert price.usd_per_million_input_tokens is None


def test_a_partial_run_says_so(tmp_path: Path) -> None:
    result = judge(run_of(tmp_path / "run", [served(0)], state=RunState.PARTIAL), slo(TTFT))
    assert result.partial is not None
    assert "stopped by SIGTERM" in result.partial


def test_needed_is_where_the_target_percentile_loses_its_mark(tmp_path: Path) -> None:
    for n, few in ((199, True), (200, False)):
        result = judge(run_of(tmp_path / f"run-{n}", [served(number) for number in range(n)]), slo(TTFT))
        assert result.objectives[0].needed_n == 200
        assert result.objectives[0].observed["p95"].few is few
        assert math.isclose(result.objectives[0].attainment or 0, 1)


def test_a_goodput_objective_is_of_requests_that_meet_all_others(tmp_path: Path) -> None:
    """Of 8 sent, 4 keep both thresholds; one is slow to start, one between tokens, one fails, one is cancelled.

    What was never sent is in no share. By its place in the file nothing changes.
    """
    rows = [
        *(served(number, ttft=0.5) for number in range(4)),
        served(4, ttft=1.5),
        served(5, ttft=0.5, itl=0.3),
        refused(6, Outcome.HTTP_5XX),
        refused(7, Outcome.CANCELLED),
        refused(8, Outcome.LATE, sent=False),
    ]
    itl, goodput = "sli: itl, threshold: 50ms, target: 95%", "sli: goodput, target: 90%"
    reader = run_of(tmp_path / "run", rows)
    for order, place in (((goodput, TTFT, itl), 0), ((TTFT, itl, goodput), 2)):
        judgement = judge(reader, slo(*order))
        assert counts(judgement, place) == (8, 4, 4)
        assert judgement.objectives[place].label == "goodput"
        assert (judgement.goodput.n, judgement.goodput.good) == (8, 4)
