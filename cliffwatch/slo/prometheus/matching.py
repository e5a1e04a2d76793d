"""Label values that matchers of PromQL accept: found by trying, since a regular expression may be anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_GROUP = re.compile(r"\((?:\?:)?([^()|]*)(?:\|[^()]*)?\)")
_ATOM = re.compile(r"(\\.|\[\^?\]?[^\]]*\]|.)(?:([*+?])|\{(\d+)(?:,\d*)?\})?")
_CLASSES = {"d": "0", "w": "a", "s": " "}
_USUAL = ("other", "0", "")  # tried where no matcher says more; "" is a label that is not there


@dataclass(frozen=True, slots=True)
class Matcher:
    """One of a selector: `operator` is `=`, `!=`, `=~` or `!~`."""

    label: str
    operator: str
    value: str

    def accepts(self, value: str) -> bool:
        """Whether a series with this value of the label is selected.

        Raises ValueError for a pattern that Python reads otherwise than Prometheus, or not at all.
        """
        return self._found(value) != self.operator.startswith("!")

    def _found(self, value: str) -> bool:
        if not self.operator.endswith("~"):
            return value == self.value
        try:
            if "[:" not in self.value:
                return re.fullmatch(self.value, value) is not None
        except re.error:
            pass
        raise ValueError(f"the pattern {self.value} cannot be tried here")


Labels = dict[str, str]


def value_of(pattern: str) -> str:
    """A value that a pattern of the catalog matches."""
    value = _sample(pattern)
    assert re.fullmatch(pattern, value)  # noqa: S101  the catalog's own patterns, each tested
    return value


def labels_for(matchers: Sequence[Matcher]) -> Labels | None:
    """Labels that all of them accept; None where none were found. Raises ValueError for patterns that Python cannot
    try."""
    return _chosen(matchers, ())


def labels_outside(matchers: Sequence[Matcher], others: Sequence[Matcher]) -> Labels | None:
    """Labels that all matchers accept, and not all of the others; None where none were found. Raises as above."""
    for label in dict.fromkeys(one.label for one in others):
        if (found := _chosen(matchers, [one for one in others if one.label == label])) is not None:
            return found
    return None


def accepted(labels: Labels, matchers: Iterable[Matcher]) -> bool:
    """Whether a series with these labels is selected."""
    return all(one.accepts(labels.get(one.label, "")) for one in matchers)


def _chosen(matchers: Sequence[Matcher], refused: Sequence[Matcher]) -> Labels | None:
    """A value for every label; that of `refused`, which are of one label, not accepted by all of them."""
    found: Labels = {}
    for label in dict.fromkeys(one.label for one in (*matchers, *refused)):
        value = _value(
            label,
            [one for one in matchers if one.label == label],
            [one for one in refused if one.label == label],
        )
        if value is None:
            return None
        if value:
            found[label] = value
    return found


def _value(label: str, asked: Sequence[Matcher], refused: Sequence[Matcher]) -> str | None:
    """The first value that fits, their own first."""
    for value in (*_own((*asked, *refused)), *_USUAL):
        there = {label: value}
        if accepted(there, asked) and not (refused and accepted(there, refused)):
            return value
    return None


def _own(matchers: Iterable[Matcher]) -> Iterator[str]:
    for one in matchers:
        if not one.operator.endswith("~"):
            yield one.value
        else:
            yield from map(_sample, one.value.split("|"))
            yield _sample(one.value)


def _sample(pattern: str) -> str:
    """A value that the first alternatives of most patterns match; the caller checks."""
    text = pattern
    while (reduced := _GROUP.sub(r"\1", text)) != text:
        text = reduced
    return "".join(_filled(*found) for found in _ATOM.findall(text.split("|")[0]) if found[0] not in "^$")


def _filled(atom: str, repeated: str, times: str) -> str:
    if atom == ".":
        one = "x" if repeated else "0"
    elif atom.startswith("\\"):
        one = _CLASSES.get(atom[1:], atom[1:])
    elif atom.startswith("["):
        one = "0" if atom.startswith("[^") else atom[1:2]
    else:
        one = atom
    return one * int(times or 1)
