"""Short words for the tables of the faces."""

from __future__ import annotations

from services.engine.metric_families import Feed, Quantity, Show

ALWAYS_ZERO = Show()  # the stand-in has no cause for it


def takes(quantity: Quantity, *labels: str, scale: float = 1.0, zeros: bool = True) -> Show:
    """One feed."""
    return Show((Feed(quantity, labels, scale, zeros),))


def by_label(**quantities: Quantity) -> Show:
    """A label's value to the quantity of that series; all of them are there from the start."""
    feeds = tuple(Feed(quantity, (value,)) for value, quantity in quantities.items())
    return Show(feeds, each(*quantities))


def each(*values: str) -> tuple[tuple[str, ...], ...]:
    """Series of one label that are there from the start."""
    return tuple((value,) for value in values)
