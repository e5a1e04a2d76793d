"""What can happen to the parts of a composite one by one, and what is then recorded of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.slo.prometheus.feed import Phase, Pod
from cliffwatch.slo.prometheus.scenarios import TABLE_SHARES, Check, Sample, Scenario
from cliffwatch.slo.prometheus.terms import Part, Terms
from cliffwatch.units import format_share

_END, _STEP = 90, 30  # minutes
_LEFT = "cliffwatch_slo:budget_left:ratio"


def of_single_parts(terms: Terms) -> Iterator[Scenario]:
    """Each part bad alone, which has its weight; and alone with events, which has all of it."""
    for name, says, pods, counted in _single(terms.parts, terms.phase, lambda part: part.weight, lambda _: Decimal(1)):
        checks = tuple(
            Check(_END, alert_name(alert.pair), firing=above > 0)
            for alert in terms.alerts
            if (above := terms.against(counted, alert))
        )
        samples = (Sample(_END, "cliffwatch_slo:bad:ratio1h", counted), Sample(_END, _LEFT, 1 - counted / terms.budget))
        yield Scenario(name, says, pods, checks, samples, terms.step(_STEP))


def of_the_least(terms: Terms, budgets: Sequence[Decimal]) -> Iterator[Scenario]:
    """What is recorded of the least budget left of the parts, each by its own."""
    own = dict(zip((part.name for part in terms.parts), budgets, strict=True))

    def left(part: Part, share: Decimal) -> Decimal:
        return 1 - part.counted(share) / own[part.name]

    for share in TABLE_SHARES:
        if not any(part.is_limit(share) for part in terms.parts):
            bad = format_share(share)
            yield _left(f"{bad} bad", f"always {bad} bad", (Pod((terms.phase(_END, share),)),), terms,
                        min(left(part, share) for part in terms.parts))  # fmt: skip
    alone = _single(terms.parts, terms.phase, lambda part: left(part, Decimal(1)), lambda part: left(part, Decimal(1)))
    for name, says, pods, value in alone:
        yield _left(name, says, pods, terms, value)
    yield _left("missing series", "nothing is exposed", (Pod((Phase(_END, gone=True),)),), terms, None)


def _left(name: str, says: str, pods: tuple[Pod, ...], terms: Terms, value: Decimal | None) -> Scenario:
    return Scenario(name, says, pods, (), (Sample(_END, _LEFT, value),), terms.step(_STEP))


def _single(
    parts: Sequence[Part],
    phase: Callable[[int, Decimal], Phase],
    bad_alone: Callable[[Part], Decimal],
    alone: Callable[[Part], Decimal],
) -> Iterator[tuple[str, str, tuple[Pod, ...], Decimal]]:
    """Name, words, pods and the value expected of each scenario of one part."""
    for index, part in enumerate(parts):
        bad = Pod((phase(_END, Decimal(1)),), part=index)
        if part.apart:
            clean = [Pod((phase(_END, Decimal(0)),), part=other) for other in range(len(parts)) if other != index]
            yield f"{part.name} alone is bad", "the other parts have good events", (*clean, bad), bad_alone(part)
        yield f"{part.name} alone has events", "all of them bad", (bad,), alone(part)
