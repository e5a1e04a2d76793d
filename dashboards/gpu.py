"""The GPUs under the engines, by the DCGM exporter: what is busy when latency jumps, memory or arithmetic."""

from __future__ import annotations

from grafanalib import core

from cliffwatch.engines.catalog import engine
from dashboards.frame import framed
from dashboards.panels import Layout, Query, time_series
from dashboards.promql import EngineQueries, Term
from dashboards.variables import instance_variable

EACH = ("instance", "gpu")
_OPTIONAL = "Optional in the exporter: switch it on in its counters file. "


def _gauge(name: str, scale: float = 1) -> Term:
    return Term((name,), by=EACH, scale=scale)


SEEN = _gauge("DCGM_FI_DEV_FB_USED")
# title, gauge, unit, highest value, what to do
ROWS: tuple[tuple[str, Term, str, int | None, str], ...] = (
    (
        "Memory bandwidth in use",
        _gauge("DCGM_FI_PROF_DRAM_ACTIVE"),
        "percentunit",
        1,
        (
            "Decode reads all weights each "
            "step: from 85 % on more requests at once no longer mean more tokens. Use smaller weights or more GPUs."
        ),
    ),
    (
        "Tensor cores active",
        _gauge("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
        "percentunit",
        1,
        (
            "High while prefills run. If it "
            "stays high, compute is the limit: fewer or shorter prompts, or a prefix cache."
        ),
    ),
    (
        "Multiprocessors active",
        _gauge("DCGM_FI_PROF_SM_ACTIVE"),
        "percentunit",
        1,
        (_OPTIONAL + "Low while requests wait: the GPU is idle, look at the CPU side of the engine."),
    ),
    (
        "Memory in use",
        _gauge("DCGM_FI_DEV_FB_USED"),
        "decmbytes",
        None,
        (
            "Engines take their share at the start; a rise "
            "later is something else on the GPU. Near the end of it: the next restart may fail."
        ),
    ),
    (
        "Memory free",
        _gauge("DCGM_FI_DEV_FB_FREE"),
        "decmbytes",
        None,
        ("What is left beside weights and KV cache. Much of it: give the engine a larger share."),
    ),
    (
        "Power",
        _gauge("DCGM_FI_DEV_POWER_USAGE"),
        "watt",
        None,
        ("At the board's limit the clock falls and all gets slower: compare with the clock beside it."),
    ),
    (
        "Clock",
        _gauge("DCGM_FI_DEV_SM_CLOCK", 1e6),
        "hertz",
        None,
        ("A fall without less load: power or heat. Cool it or raise the limit of power."),
    ),
    (
        "Temperature",
        _gauge("DCGM_FI_DEV_GPU_TEMP"),
        "celsius",
        None,
        ("What throttles the clock. One GPU hotter than its neighbours: its cooling."),
    ),
    (
        "Last error (XID)",
        _gauge("DCGM_FI_DEV_XID_ERRORS"),
        "none",
        None,
        (
            "A code, not a count: 0 is none. Look the code "
            "up in NVIDIA's list; 48, 79 and 94 ask for a drain of the node."
        ),
    ),
)


def board() -> core.Dashboard:
    """The dashboard, panels placed."""
    ask, layout = EngineQueries(engine("dcgm"), SEEN), Layout()
    panels = [
        time_series(
            title,
            [Query(ask.value(gauge, "max"), "{{instance}} GPU {{gpu}}")],
            unit=unit,
            maximum=maximum,
            no_value="no DCGM exporter is scraped",
            description=says,
        )
        for title, gauge, unit, maximum, says in ROWS
    ]
    layout.section("Each GPU")
    layout.spread(8, panels, 3)
    return framed(
        "gpu",
        "GPU",
        "Memory bandwidth, tensor cores, power and memory of each GPU (DCGM exporter).",
        layout,
        [instance_variable("DCGM_FI_DEV_FB_USED")],
        tags=["engine"],
    )
