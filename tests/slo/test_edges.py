"""Edges of live histograms: every threshold is one, and the engine's own are."""

from __future__ import annotations

from cliffwatch.engines.catalog import engine
from cliffwatch.slo.edges import ALWAYS, histogram_edges
from cliffwatch.slo.spec import parse_slo

FILE = """\
name: test
objectives:
  - {sli: ttft, threshold: 333ms, target: 90%}
  - {sli: ttft, threshold: 5s, target: 99%}
  - {sli: ttft, threshold: 211ms, target: 90%, clock: sent}
  - {sli: itl, threshold: 17ms, target: 90%}
  - {sli: ntpot, threshold: 19ms, target: 90%}
  - {sli: availability, target: 99%}
"""


def test_each_threshold_is_an_edge_of_the_figure_that_it_is_judged_on() -> None:
    slo = parse_slo(FILE, source="test")
    found = histogram_edges(slo, open_loop=True, engine_name="vllm")
    assert set(found) == {*ALWAYS, "ttft_s", "ntpot_s"}
    vllm = engine("vllm")
    ttft = vllm.edges["ttft"][-1].values
    assert found["ttft_user_s"] == tuple(sorted({0.333, *ttft}))  # 5 s is one of the engine's own
    assert found["ttft_s"] == tuple(sorted({0.211, *ttft}))
    assert found["itl_s"] == tuple(sorted({0.017, *vllm.edges["itl"][-1].values}))
    assert found["e2e_user_s"] == vllm.edges["latency"][-1].values


def test_closed_loops_are_judged_from_sent() -> None:
    found = histogram_edges(parse_slo(FILE, source="test"), open_loop=False, engine_name=None)
    assert {0.333, 5.0, 0.211} <= set(found["ttft_s"])
    assert 0.333 not in found["ttft_user_s"]


def test_the_engine_s_own_edges_or_the_usual_ones() -> None:
    sglang = histogram_edges(None, open_loop=True, engine_name="sglang")
    assert sglang["ttft_user_s"] == engine("sglang").edges["ttft"][-1].values
    usual = histogram_edges(None, open_loop=True, engine_name="vllm")
    # without a histogram, with one in milliseconds, not in the catalog, not known
    for name in ("llamacpp", "triton", "no-such-engine", None):
        assert histogram_edges(None, open_loop=True, engine_name=name) == usual
