"""Series written for promtool, against values worked out by hand."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from cliffwatch.engines.catalog import engines
from cliffwatch.slo.prometheus.feed import Fed, NotFed, Phase, Pod, Series, counter, gauge
from cliffwatch.slo.prometheus.feeds import feed_of
from cliffwatch.slo.prometheus.matching import value_of
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch


def phase(minutes: int, events: int, bad: int = 0, **how: bool) -> Phase:
    return Phase(minutes, Decimal(events), Decimal(bad), **how)


def series(objective: dict[str, object], pod: Pod, **watch: object) -> Series:
    fed = feed_of(Objective.model_validate(objective), Watch.model_validate({"engine": "vllm", **watch}))
    assert isinstance(fed, Fed)
    return fed.feed.series(pod)


def test_a_counter_rises_by_the_minute_and_each_phase_goes_on_where_the_last_ended() -> None:
    """0, 10, 20, 30, then idle at 30, then 30 + 7 = 37."""
    phases = (phase(3, 10), phase(2, 0), phase(1, 7))
    assert counter(phases, lambda each: each.events) == "0 10+10x2 30+0x1 37+7x0"


def test_a_counter_that_restarts_or_appears_begins_at_nothing() -> None:
    restarted = (phase(2, 10), phase(2, 10, restarted=True))
    assert counter(restarted, lambda each: each.events) == "0 10+10x1 10+10x1"
    appears = (phase(2, 0, gone=True), phase(3, 10))
    assert counter(appears, lambda each: each.events) == "_ _x2 0+10x2"


def test_a_histogram_has_its_edge_and_both_neighbours() -> None:
    """Of 100 a minute 5 are over 2.5 s: none within 1 s, 95 within 2.5 s, all within 5 s."""
    made = series({"sli": "ttft", "threshold": "2.5s", "target": "95%"}, Pod((phase(2, 100, 5),)), match={"job": "j"})
    labels = 'instance="a",job="j"'
    name = "vllm:time_to_first_token_seconds"
    assert made == {
        f'{name}_bucket{{{labels},le="1.0"}}': "0 0+0x1",
        f'{name}_bucket{{{labels},le="2.5"}}': "0 95+95x1",
        f'{name}_bucket{{{labels},le="5.0"}}': "0 100+100x1",
        f"{name}_count{{{labels}}}": "0 100+100x1",
    }


def test_an_old_pod_has_the_old_layout_in_gos_spelling() -> None:
    """Before 0.8.5 the edges of vLLM's TTFT end at 10 s: 20 s counts there."""
    objective = {"sli": "ttft", "threshold": "20s", "target": "95%"}
    old = series(objective, Pod((phase(1, 100, 5),), old=True))
    assert [re.findall('le="(.*?)"', name) for name in old if "_bucket" in name] == [["7.5"], ["10"]]
    new = series(objective, Pod((phase(1, 100, 5),)))
    assert [re.findall('le="(.*?)"', name) for name in new if "_bucket" in name] == [["10.0"], ["20.0"], ["40.0"]]


def test_answers_of_one_token_stand_in_the_histogram_and_are_no_event() -> None:
    """100 events with 5 bad, and 10 answers of one token, recorded as 0 s."""
    made = series({"sli": "tpot", "threshold": "50ms", "target": "95%"}, Pod((phase(1, 100, 5),)))
    tpot = "vllm:request_time_per_output_token_seconds"
    assert made[f'{tpot}_count{{instance="a"}}'] == "0 110+110x0"
    assert made[f'{tpot}_bucket{{instance="a",le="0.05"}}'] == "0 105+105x0"
    assert made['vllm:request_generation_tokens_bucket{instance="a",le="1.0"}'] == "0 10+10x0"


@pytest.mark.parametrize(
    ("engine", "all_of_them", "bad"),
    [
        ("vllm", 'http_requests_total{instance="a",handler="/v1/x",status="other"} 95', 'status="5xx"} 5'),
        ("trtllm", 'trtllm_request_success_total{instance="a"} 95', 'http_code="500"} 5'),
        ("epp", 'llm_d_epp_request_total{instance="a"} 100', 'llm_d_epp_request_error_total{instance="a"} 5'),
        ("tgi", 'tgi_request_count{instance="a"} 100', 'err="overloaded"} 5'),
    ],
)
def test_counters_count_bad_events_among_all_or_beside_the_good(engine: str, all_of_them: str, bad: str) -> None:
    made = series({"sli": "availability", "target": "99%"}, Pod((phase(1, 100, 5),)), engine=engine)
    first, second = (f"{name} {values.split()[1].split('+')[0]}" for name, values in made.items())
    assert first == all_of_them
    assert second.endswith(bad)
    without = series({"sli": "availability", "target": "99%"}, Pod((phase(1, 100),), without_bad=True), engine=engine)
    assert len(without) == 1


def test_every_pattern_of_the_catalog_has_a_value() -> None:
    patterns = {
        pattern
        for engine in engines()
        for source in engine.slis.values()
        for one in (*source.events, *source.bad)
        for pattern in one.match.values()
    }
    assert patterns
    assert all(re.fullmatch(pattern, value_of(pattern)) for pattern in patterns)


def test_what_the_file_matches_is_what_is_exposed() -> None:
    match = {"handler": "/v1/chat/completions"}
    made = series({"sli": "availability", "target": "99%"}, Pod((phase(1, 100, 5),)), match=match)
    assert all('handler="/v1/chat/completions"' in name for name in made)


def test_a_gauge_has_each_phases_value() -> None:
    """3 at minute 0 and until 2, then nothing, then 0."""
    phases = (phase(2, 3), phase(1, 0, gone=True), phase(2, 0))
    assert gauge(phases, lambda each: each.events) == "3 3+0x1 _x1 0+0x1"


THROUGHPUT = {"sli": "throughput", "slices": {"length": "5m", "tokens_per_s": 450}, "target": "99%"}


@pytest.mark.parametrize(
    ("engine", "tokens"),
    [
        ("vllm", 'vllm:generation_tokens_total{instance="a"}'),
        ("tgi", 'tgi_request_generated_tokens_sum{instance="a"}'),
        ("sglang", 'sglang:realtime_tokens_total{instance="a",mode="decode"}'),
    ],
)
def test_missing_tokens_are_bad_and_a_tenth_is_spare(engine: str, tokens: str) -> None:
    """450 a second and a tenth to spare is 500, 30,000 a minute; half of the events bad is half of these missing."""
    made = series(THROUGHPUT, Pod((phase(2, 100), phase(2, 100, 50), phase(1, 0))), engine=engine)
    assert made[tokens] == "0 30000+30000x1 75000+15000x1 90000+0x0"
    (running,) = [values for name, values in made.items() if name != tokens]
    assert running == "1 1+0x1 1+0x1 0+0x0"


@pytest.mark.parametrize("tokens_per_s", [0.01, 333.3, 1e9])
def test_sums_of_tokens_are_exact_in_binary(tokens_per_s: float) -> None:
    """As a server adds them up: else a counter would seem to run backwards where a phase begins."""
    slices = {"length": "5m", "tokens_per_s": tokens_per_s}
    phases = (phase(4320, 1000), phase(100, 1000, 7), phase(10, 1000))
    made = series({**THROUGHPUT, "slices": slices}, Pod(phases))
    first, *others = made['vllm:generation_tokens_total{instance="a"}'].split()
    total = float(first)
    for part in others:
        start, step, steps = (float(number) for number in re.split(r"[+x]", part))
        assert start == total + step
        total = start
        for _ in range(int(steps)):
            total += step


def promql(everything: str, bad: str, **watch: object) -> Fed | NotFed:
    rates = {"all": everything, "bad": bad}
    one = {"sli": "promql", "name": "gate", "target": "99%", "promql": rates}
    return feed_of(Objective.model_validate(one), Watch.model_validate({"engine": "vllm", **watch}))


@pytest.mark.parametrize(
    ("everything", "bad", "exposed"),
    [
        (
            "rate(asked[{window}])",
            'rate(asked{code=~"5..",route!="x"}[{window}])',
            {'asked{instance="a",code="other"}': 95, 'asked{instance="a",code="500",route="other"}': 5},
        ),
        (
            "sum(rate(asked[{window}])) or vector(0)",
            "( sum by (why) (rate(failed{}[{window}])) )",
            {'asked{instance="a"}': 100, 'failed{instance="a"}': 5},
        ),
        (
            'rate(h_count{a="1"}[{window}])',
            """rate(h_count{a='1'}[{window}]) - rate(h_bucket{a=`1`, le="0.5",}[{window}])""",
            {'h_count{instance="a",a="1"}': 100, 'h_bucket{instance="a",a="1",le="0.5"}': 95},
        ),
        (
            "rate(asked[{window}])",
            'sum(rate(asked[{window}])) - sum(rate(asked{code="200"}[{window}]))',
            {'asked{instance="a",code="other"}': 5, 'asked{instance="a",code="200"}': 95},
        ),
        (
            'rate(asked{code="200"}[{window}])',
            'rate(asked{code="500"}[{window}])',
            {'asked{instance="a",code="200"}': 100, 'asked{instance="a",code="500"}': 5},
        ),
    ],
)
def test_own_promql_is_fed_where_it_can_be_read(everything: str, bad: str, exposed: dict[str, int]) -> None:
    """5 of 100 a minute are bad; what counts both counts 100."""
    fed = promql(everything, bad)
    assert isinstance(fed, Fed)
    made = fed.feed.series(Pod((phase(1, 100, 5),)))
    assert made == {name: f"0 {rise}+{rise}x0" for name, rise in exposed.items()}


@pytest.mark.parametrize(
    ("everything", "bad", "why"),
    [
        ("increase(a[{window}])", "rate(b[{window}])", "`all` of its PromQL is no sum(rate("),
        ("rate(a[{window}])", "rate(b[{window}]) + rate(c[{window}])", "`bad` of its PromQL is neither a sum(rate("),
        ("rate(a[{window}])", "rate(b[{window}]) - rate(c[{window}])", "not one of `all` less what is good"),
        ("rate(a[{window}])", "rate(a[{window}])", "not as well in the other rate"),
        ("rate(a[{window}])", 'rate(b{x="1",x="2"}[{window}])', "no labels were found"),
        ("rate(a[{window}])", 'rate(b{x=~"[[:alpha:]]"}[{window}])', "cannot be tried here"),
        ("rate(a[{window}])", 'rate(b{x=~"a++("}[{window}])', "cannot be tried here"),
        ("rate(a[{window}])", 'rate(b{x="\\x41"}[{window}])', "has escapes that are not read here"),
        ("rate(a[{window}])", 'rate({__name__="b"}[{window}])', "`bad` of its PromQL is neither"),
    ],
)
def test_what_cannot_be_read_of_own_promql_is_said(everything: str, bad: str, why: str) -> None:
    found = promql(everything, bad)
    assert isinstance(found, NotFed)
    assert why in found.why


def test_own_promql_whose_groups_tell_good_from_bad_has_no_feed() -> None:
    found = promql("rate(a[{window}])", 'rate(a{code="500"}[{window}])', group_by=["code"], target_labels=["code"])
    assert isinstance(found, NotFed)
    assert "label code of watch.group_by" in found.why
