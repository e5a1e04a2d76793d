"""A search as tables and a curve for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import plotext
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cliffwatch.capacity.result import Capacity, Fewer, Record
from cliffwatch.capacity.search import State
from cliffwatch.capacity.sequential import Outcome
from cliffwatch.report.words import UNKNOWN, attained, interval, share

STYLE = {
    Outcome.HOLDS: "green",
    Outcome.FAILS: "bold red",
    Outcome.UNDECIDED: "yellow",
    Outcome.INVALID: "dim",
}
SAYS = {
    State.FOUND: "the SLO holds up to {capacity} {unit} ({interval}, {confidence:.0%} confidence)",
    State.WIDE: "the SLO holds up to {capacity} {unit} ({interval}, {confidence:.0%} confidence): the probes are spent "
    "and the interval is wider than the {precision:.2g} % asked for",
    State.AT_LEAST: "the SLO holds at {low} {unit}, the highest that was allowed: the capacity is at least that",
    State.TOO_HIGH: "the SLO fails at {high} {unit}, the lowest that was allowed: the capacity is below that",
    State.GENERATOR: "the load generator, not the server, is the limit: at {rate} {unit} it could not keep up, twice; "
    "the SLO holds at {low} {unit}, so the capacity is at least that",
    State.NOTHING: "not known: no probe counts, since the load generator could not keep up with any",
    State.SEARCHING: "not found yet: it lies between {low} and {high} {unit}",
}
WIDTH, HEIGHT = 76, 16


def render(found: Capacity) -> RenderableType:
    """Probes, answer, curve, knee, one replica fewer."""
    return Group(*_parts(found))


def _parts(found: Capacity) -> Iterator[RenderableType]:
    yield Text.assemble((found.workload, "bold"), f" at {found.target}, SLO {found.slo}")
    yield _probes(found)
    notes = [Text(f"  probe {one.number}: {note}", style="dim") for one in found.probes for note in one.notes]
    yield from notes
    if any(one.goodput_per_s for one in found.probes):
        yield Text(curve(found), no_wrap=True)
    if found.interrupted is not None:
        yield Text(f"The search was {found.interrupted}.", style="yellow")
    yield Text.assemble(("capacity: ", "bold"), sentence(found))
    yield from (Text(line) for line in _more(found))
    yield from (Text(note, style="yellow") for note in found.notes)


def sentence(found: Capacity) -> str:
    """The answer in words."""
    answer = found.answer
    if answer.state is State.SEARCHING and answer.low is None and answer.high is None:
        return "not found yet: no probe has told anything of it"
    last = found.probes[-1].rate if found.probes else None
    unknown = answer.state is State.WIDE and answer.capacity is None
    return SAYS[State.SEARCHING if unknown else answer.state].format(
        capacity=number(answer.capacity),
        low=number(answer.low),
        high=number(answer.high),
        rate=number(last),
        unit=found.unit,
        interval=f"{number(answer.low)} to {number(answer.high)}",
        confidence=found.confidence,
        precision=100 * found.precision,
    )


def number(value: float | None) -> str:
    """Four digits; what is not known is said as a dash."""
    return UNKNOWN if value is None else f"{value:.4g}"


def _probes(found: Capacity) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("probe", found.unit, "achieved", "goodput/s", *found.objectives, "verdict"):
        table.add_column(name, justify="left" if name == "verdict" else "right", no_wrap=True)
    for one in found.probes:
        table.add_row(
            f"{one.number}",
            number(one.rate),
            number(None if one.evidence is None else one.evidence.arrivals_per_s),
            _goodput(one),
            *(_attained(one, place) for place in range(len(found.objectives))),
            Text.assemble((one.outcome, STYLE[one.outcome]), (f"\n{one.decision}", "dim")),
        )
    return table


def _goodput(one: Record) -> Text:
    if one.goodput_per_s is None:
        return Text(UNKNOWN)
    value, low, high = one.goodput_per_s
    return Text.assemble(number(value), (f"\n{number(low)}–{number(high)}", "dim"))


def _attained(one: Record, place: int) -> Text:
    if place >= len(one.attained):
        return Text(UNKNOWN)
    found = one.attained[place]
    return Text.assemble(
        attained(found.share), (f"\n{interval(found.low, found.high)}" if found.n else "", "dim"), f"\nn {found.n:,}"
    )


def _more(found: Capacity) -> Iterator[str]:
    answer, knee = found.answer, found.knee
    if answer.binding is not None:
        yield f"binding objective: {found.objectives[answer.binding]}"
    if knee is not None and knee.rate is not None:
        yield (
            f"knee of goodput: {number(knee.rate)} {found.unit} "
            f"({number(knee.low)} to {number(knee.high)}, 95 % confidence, n {knee.n} probes)"
        )
    elif knee is not None:
        yield f"knee of goodput: not found (n {knee.n} probes): {knee.reason}"
    if found.headroom is not None:
        yield f"headroom: {_headroom(found.headroom, found.demand, found.unit)}"
    if found.fewer is not None:
        yield _fewer(found.fewer, found.unit)


def _headroom(value: float, demand: float | None, unit: str) -> str:
    if value < 0:
        return f"none: the workload's own {number(demand)} {unit} are over the capacity's lower end by {share(-value)}"
    return f"the workload's own {number(demand)} {unit} leave {share(value)} of the capacity's lower end free"


def _fewer(fewer: Fewer, unit: str) -> str:
    how = "measured" if fewer.measured else "assuming that capacity is linear in the replicas"
    text = f"with one replica fewer ({fewer.replicas}): {number(fewer.capacity)} {unit}"
    text += f" ({number(fewer.low)} to {number(fewer.high)}; {how})"
    return text if fewer.headroom is None else f"{text}; {_headroom(fewer.headroom, fewer.demand, unit)}"


def curve(found: Capacity) -> str:
    """Goodput against the rate, as text; the upright line is the capacity."""
    points = sorted((one.rate, one.goodput_per_s[0]) for one in found.probes if one.goodput_per_s is not None)
    rates, goodput = ([point[place] for point in points] for place in (0, 1))
    figure = plotext.figure
    figure.clear()
    figure.plot_size(WIDTH, HEIGHT)
    signal = figure.signal(rates, goodput)
    signal.lines()
    figure.draw(signal)
    if found.answer.capacity is not None:
        figure.line(found.answer.capacity, 1)
    figure.ruler("x").lim(0, max(rates) * 1.05)
    figure.ruler("y").lim(0, max(goodput) * 1.1 or 1)
    figure.label(found.unit, "x")
    figure.label("goodput/s", "y")
    return str(figure.build().string(True))
