"""Folders of YAML data files, one thing each, found by name or alias."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Annotated, Self, TypeVar

from pydantic import Field, model_validator

from cliffwatch.config import ConfigModel, parse_config
from cliffwatch.errors import InputError


class Source(ConfigModel):
    """Where figures were read: a page's title, and its address unless it is a command's output."""

    figures: Annotated[tuple[str, ...], Field(min_length=1)]
    title: str
    address: str | None = None


class Named(ConfigModel):
    """What a data file describes; every figure of it is in one of its sources.

    Attributes:
        aliases: other names of it, in lower case.
    """

    name: str
    aliases: tuple[str, ...] = ()
    sources: tuple[Source, ...]

    @model_validator(mode="after")
    def _every_figure_has_its_source(self) -> Self:
        figures = set(type(self).model_fields) - set(Named.model_fields)
        told = [figure for source in self.sources for figure in source.figures]
        if sorted(told) != sorted(figures):
            raise ValueError(
                f"sources tell of {', '.join(sorted(told))}; allowed: each of {', '.join(sorted(figures))} once"
            )
        return self

    @property
    def source(self) -> str:
        """The titles of its sources, in a line."""
        return "; ".join(source.title for source in self.sources)


Thing = TypeVar("Thing", bound=Named)


@cache
def load_all(folder: str, kind: type[Thing]) -> tuple[Thing, ...]:
    """Every thing of a folder beside this module, by file name."""
    files = (resources.files("cliffwatch.roofline") / folder).iterdir()
    texts = {file.name: file.read_text(encoding="utf-8") for file in files if file.name.endswith(".yaml")}
    return tuple(parse_config(texts[name], kind, source=f"{folder}/{name}") for name in sorted(texts))


def find(folder: str, kind: type[Thing], name: str, *, field: str) -> Thing:
    """The thing of that name or alias, in any case. Raises InputError that names the known ones."""
    things: tuple[Thing, ...] = load_all(folder, kind)
    for thing in things:
        if name.casefold() in (thing.name.casefold(), *thing.aliases):
            return thing
    raise InputError(
        "nothing is known of it", field=field, value=name, allowed=", ".join(thing.name for thing in things)
    )
