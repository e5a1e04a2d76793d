"""The boards of engine internals, one an engine: queue, batch, KV cache, stages of a request, tokens, ends.

Every board is the same list of panels, filled by the engine's roles; a panel whose role the engine lacks is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from grafanalib import core

from cliffwatch.engines.catalog import engine
from dashboards.frame import framed
from dashboards.panels import AMBER, GREEN, RED, WITHIN_BUCKET, Layout, Query, stat, time_series
from dashboards.promql import QUANTILES, SHOWN, EngineQueries, Ratio, Term
from dashboards.roles import ROLES, Roles
from dashboards.variables import instance_variable, model_variable

Panel = Callable[[Roles, EngineQueries], Any]  # nothing where the engine has no such thing


def board(name: str) -> core.Dashboard:
    """The board of one engine of the catalog, panels placed."""
    roles = ROLES[name]
    ask = EngineQueries(engine(name), roles.running)
    layout = Layout()
    for section, height, per_line, makers in _SECTIONS:
        panels = [panel for make in makers if (panel := make(roles, ask))]
        if panels:
            layout.section(section)
            layout.spread(height, panels, per_line)
    title, probe = ask.engine.title, roles.running.names[0]
    models = [model_variable(probe, ask.model_label)] if ask.model_label else []
    return framed(
        f"engine-{name}",
        f"engine: {title}",
        f"Inside {title}: why requests wait. It does not tell: {roles.lacks}.",
        layout,
        [*models, instance_variable(probe)],
        tags=["engine"],
    )


BOARDS = {f"engine-{name}": partial(board, name) for name in ROLES}


def _running_now(roles: Roles, ask: EngineQueries) -> Any:
    return stat(
        "Running",
        Query(f"sum({ask.value(roles.running)})", instant=True),
        unit="short",
        description="Requests in the batch now. Where this stands at its limit, more load only makes the queue longer.",
    )


def _waiting_now(roles: Roles, ask: EngineQueries) -> Any:
    return stat(
        "Waiting",
        Query(f"sum({ask.value(roles.waiting)})", instant=True),
        unit="short",
        steps=((GREEN, None), (AMBER, 1)),
        description="Requests queued now. Over 0 for minutes: add replicas, or send less at once.",
    )


def _kv_now(roles: Roles, ask: EngineQueries) -> Any:
    return roles.kv and stat(
        "KV cache, fullest replica",
        Query(f"max({ask.value(roles.kv, 'max')})", instant=True),
        unit="percentunit",
        steps=((GREEN, None), (AMBER, 0.8), (RED, 0.95)),
        description="Share in use. From 95 % on requests wait or are preempted: allow fewer at once, shorten prompts, "
        "or give the cache more memory.",
    )


def _found_now(roles: Roles, ask: EngineQueries) -> Any:
    return roles.found and stat(
        "Prefix cache hits",
        Query(ask.ratio(roles.found, SHOWN), ask.legend(""), instant=True),
        unit="percentunit",
        description="Share of prompt tokens found in the cache over the time shown. If it fell, look for a change of "
        "prompts or of routing: every first token is later since.",
    )


def _preempted_now(roles: Roles, ask: EngineQueries) -> Any:
    return roles.preempted and stat(
        "Preemptions",
        Query(ask.total(roles.preempted), instant=True),
        unit="short",
        steps=((GREEN, None), (AMBER, 1)),
        description="Requests thrown out of the KV cache and computed again, over the time shown. Any: the cache "
        "is too small for what runs at once.",
    )


def _lost_now(roles: Roles, ask: EngineQueries) -> Any:
    return roles.lost and stat(
        "Without a whole answer",
        Query(" + ".join(f"({ask.total(one)})" for one in roles.lost.values()), instant=True),
        unit="short",
        steps=((GREEN, None), (AMBER, 1)),
        description=f"Requests over the time shown that ended as: {', '.join(roles.lost)}. When and how many is below; "
        "the engine's log says why.",
    )


def _requests(roles: Roles, ask: EngineQueries) -> Any:
    lines = {"running": roles.running, "waiting": roles.waiting, "at most": roles.limit, "paused": roles.paused}
    return time_series(
        "Requests in the engine",
        [Query(ask.value(one), ask.legend(name, one)) for name, one in lines.items() if one],
        unit="short",
        description="Waiting that grows while running stays flat is the cliff: the engine takes no more at once. Send "
        "less or add replicas; a longer batch limit only helps while the KV cache has room.",
    )


def _waiting_why(roles: Roles, ask: EngineQueries) -> Any:
    return roles.waiting_why and time_series(
        "Waiting, by reason",
        [Query(ask.value(roles.waiting_why), ask.legend("", roles.waiting_why))],
        unit="short",
        description="What queued requests wait for. Capacity: the batch or the KV cache is full. Deferred: held back "
        "on purpose, for a cache of another engine or a grammar that is not ready.",
    )


def _kv(roles: Roles, ask: EngineQueries) -> Any:
    return roles.kv and time_series(
        "KV cache in use, fullest replica",
        [Query(ask.value(roles.kv, "max"), ask.legend(""))],
        unit="percentunit",
        maximum=1,
        description="Share of the cache taken. Full for long while requests wait: prompts and answers together are the "
        "limit, not compute.",
    )


def _preempted(roles: Roles, ask: EngineQueries) -> Any:
    return roles.preempted and time_series(
        "Preemptions",
        [Query(ask.events(roles.preempted), ask.legend("a second"))],
        unit="cps",
        description="Requests put back into the queue for want of cache, each second. Lower the number that may run at "
        "once until this is 0.",
    )


def _found(roles: Roles, ask: EngineQueries) -> Any:
    return roles.found and time_series(
        "Prefix cache hits",
        [Query(ask.ratio(roles.found), ask.legend(""))],
        unit="percentunit",
        maximum=1,
        description="Share of prompt tokens found in the cache. Low with conversations or shared system prompts: route "
        "a user's requests to the same replica.",
    )


def _stages(roles: Roles, ask: EngineQueries) -> Any:
    return time_series(
        f"Mean time of {roles.stages_of}",
        [Query(_mean(ask, one), _stage_name(ask, name, one)) for name, one in roles.stages.items()],
        unit="s",
        stacked=roles.stages_of == "a request",
        description="Sums divided by counts. Queue grows: too much at once. Prefill grows: longer prompts or fewer "
        "cache hits. Decode grows: longer answers or a larger batch.",
    )


def _slow_stages(roles: Roles, ask: EngineQueries) -> Any:
    histograms = {name: one for name, one in roles.stages.items() if isinstance(one, Term)}
    return histograms and time_series(
        "Stages, p95",
        [Query(ask.quantile(0.95, one), _stage_name(ask, name, one)) for name, one in histograms.items()],
        unit="s",
        description=f"The slow end of each stage; parts do not add up to a request's p95. {WITHIN_BUCKET}",
    )


def _tokens(roles: Roles, ask: EngineQueries) -> Any:
    return time_series(
        "Tokens a second",
        [Query(ask.rate(one), ask.legend(name, one)) for name, one in roles.tokens.items()],
        unit="short",
        description="Prompt tokens taken in, those found in a cache, and tokens generated. Generated flat while "
        "requests wait is what this engine can do: compare it with the capacity you measured.",
    )


def _step(roles: Roles, ask: EngineQueries) -> Any:
    return roles.step and time_series(
        "Tokens of an engine step",
        [Query(_mean(ask, roles.step), ask.legend("mean"))],
        unit="short",
        description="Mean over steps. Jumps to thousands are prefills sharing a step with decodes, and make the next "
        "tokens of all others late: chunk prefills smaller if ITL is what you promised.",
    )


def _steps(roles: Roles, ask: EngineQueries) -> Any:
    return roles.steps and time_series(
        "Steps a second",
        [Query(ask.rate(roles.steps), ask.legend(""))],
        unit="cps",
        description="Engine steps. 0 while requests run: the engine hangs, restart it.",
    )


def _lengths(roles: Roles, ask: EngineQueries) -> Any:
    return roles.lengths and time_series(
        "Mean length of requests",
        [Query(ask.mean(one), ask.legend(name)) for name, one in roles.lengths.items()],
        unit="short",
        description="Tokens: sums divided by counts. If latency moved and this moved with it, the traffic changed, not "
        "the engine.",
    )


def _ends(roles: Roles, ask: EngineQueries) -> Any:
    return roles.ends and time_series(
        "Finished requests",
        [Query(ask.rate(roles.ends), ask.legend("" if roles.ends.by else "finished", roles.ends))],
        unit="reqps",
        description="Requests that ended, by reason where the engine tells. Many that end by length: answers are cut "
        "off at the limit of tokens.",
    )


def _lost(roles: Roles, ask: EngineQueries) -> Any:
    return roles.lost and time_series(
        "Without a whole answer",
        [Query(ask.events(one), ask.legend(name, one)) for name, one in roles.lost.items()],
        unit="reqps",
        description="Refused, aborted or failed requests. Refused: the queue limit works, send less. Aborted: clients "
        "gave up, look at the queue. Failed: read the engine's log.",
    )


def _latency(figure: str, roles: Roles, ask: EngineQueries) -> Any:
    histogram = roles.latency.get(figure)
    return histogram and time_series(
        figure,
        [Query(ask.quantile(share, histogram), ask.legend(f"p{share * 100:g}")) for share in QUANTILES],
        unit="s",
        description=f"As the engine counts it, without the network. If clients see more, look at proxies and at "
        f"the client's own lag. {WITHIN_BUCKET}",
    )


def _mean(ask: EngineQueries, of: Term | Ratio) -> str:
    return ask.ratio(of) if isinstance(of, Ratio) else ask.mean(of)


def _stage_name(ask: EngineQueries, name: str, of: Term | Ratio) -> str:
    return ask.legend(name, of if isinstance(of, Term) else None)


# title, height, panels a line at most, panels
_SECTIONS: tuple[tuple[str, int, int, tuple[Panel, ...]], ...] = (
    ("Now", 4, 6, (_running_now, _waiting_now, _kv_now, _found_now, _preempted_now, _lost_now)),
    ("Queue, batch, KV cache", 8, 3, (_requests, _waiting_why, _kv, _preempted, _found)),
    ("Where the time goes", 8, 3, (_stages, _slow_stages)),
    ("Tokens", 8, 3, (_tokens, _step, _steps, _lengths)),
    ("How requests end", 8, 3, (_ends, _lost)),
    ("Latency", 8, 2, tuple(partial(_latency, figure) for figure in ("TTFT", "ITL", "TPOT", "E2E"))),
)
