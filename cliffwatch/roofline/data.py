"""Folders of YAML data files, one thing each, found by name or alias."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TypeVar

from cliffwatch.config import ConfigModel, parse_config
from cliffwatch.errors import InputError


class Named(ConfigModel):
    """What a data file describes.

    Attributes:
        aliases: other names of it, in lower case.
        source: where its figures are published.
    """

    name: str
    aliases: tuple[str, ...] = ()
    source: str


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
