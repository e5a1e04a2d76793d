"""Groups of commands as a table, each imported only when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

Table = Mapping[str, tuple[str, str]]  # name: (module:attribute of a Typer app, one line of help shown without it)


def lazy_group(table: Table) -> type[TyperGroup]:
    """A command group that knows its commands' names and help, and imports a command when it is called."""

    class LazyGroup(TyperGroup):
        def list_commands(self, _ctx: Any) -> list[str]:
            return list(table)

        def get_command(self, _ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in table:
                return None
            target, summary = table[cmd_name]
            if not any(argument in table for argument in sys.argv[1:]):  # only the list is wanted
                return TyperCommand(cmd_name, help=summary)
            module, attribute = target.split(":")
            command = typer.main.get_command(getattr(importlib.import_module(module), attribute))
            command.name = cmd_name
            return command

    return LazyGroup
