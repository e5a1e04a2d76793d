"""Series written for promtool, against values worked out by hand."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from cliffwatch.engines.catalog import engines
from cliffwatch.slo.prometheus.feed import Phase, Pod, Series, counter, feed_of, one_of
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch


def phase(minutes: int, events: int, bad: int = 0, **how: bool) -> Phase:
    return Phase(minutes, Decimal(events), Decimal(bad), **how)


def series(objective: dict[str, object], pod: Pod, **watch: object) -> Series:
    return feed_of(Objective.model_validate(objective), Watch.model_validate({"engine": "vllm", **watch})).series(pod)


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
    assert all(re.fullmatch(pattern, one_of(pattern)) for pattern in patterns)


def test_what_the_file_matches_is_what_is_exposed() -> None:
    match = {"handler": "/v1/chat/completions"}
    made = series({"sli": "availability", "target": "99%"}, Pod((phase(1, 100, 5),)), match=match)
    assert all('handler="/v1/chat/completions"' in name for name in made)
