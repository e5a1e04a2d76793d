"""Where live histograms have their edges: at every threshold of the SLO file, and where the engine has its own."""

from __future__ import annotations

from cliffwatch.engines.catalog import engine, engine_names
from cliffwatch.slo.sli import SLIS, Sli
from cliffwatch.slo.spec import SloFile

# In every run: TTFT and E2E as reports call them (from the intended time), and ITL.
ALWAYS = ("ttft_user_s", "itl_s", "e2e_user_s")
_USUAL_ENGINE = "vllm"
# Which of an engine's histograms a figure is laid beside: ours are a request's means, and so is an engine's TPOT.
_BESIDE = {Sli.TTFT: "ttft", Sli.TTFA: "ttft", Sli.E2E: "e2e", Sli.ITL: "tpot", Sli.TPOT: "tpot", Sli.NTPOT: "tpot"}


def histogram_edges(slo: SloFile | None, *, open_loop: bool, engine_name: str | None) -> dict[str, tuple[float, ...]]:
    """Edges in seconds by figure: those of `ALWAYS`, and every other one that the SLO file is judged on.

    Each threshold is an edge exactly, so the share of requests within it can be read off without interpolation. The
    other edges are those that the engine's newest version has by default; vLLM's where the engine is not known or has
    no histogram in seconds.
    """
    slis = {figure: sli for sli, traits in SLIS.items() for figure in traits.figures.values()}
    thresholds: dict[str, set[float]] = {figure: set() for figure in ALWAYS}
    for objective in slo.objectives if slo is not None else ():
        figure = objective.figure(open_loop=open_loop)
        if figure is not None and objective.threshold is not None:
            thresholds.setdefault(figure, set()).add(objective.threshold)
    return {
        figure: tuple(sorted(own.union(_engine_edges(engine_name, _BESIDE[slis[figure]]))))
        for figure, own in thresholds.items()
    }


def _engine_edges(name: str | None, sli: str) -> tuple[float, ...]:
    for known in (name, _USUAL_ENGINE):
        if known not in engine_names():
            continue
        record = engine(known)
        source = next((source for key, source in record.slis.items() if key == sli), None)
        for metric in [record.metric(exposed) for exposed in source.metrics] if source is not None else []:
            edges = record.edges_of(metric)
            if edges is not None and metric.type == "histogram" and metric.unit == "s":
                return edges
    raise AssertionError("the usual engine has every histogram")
