"""Where tables are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

LOG_COLUMNS = 160


def console(*, markup: bool = True) -> Console:
    """Standard output; without `markup`, square brackets are text.

    Only a terminal's own width is a limit; a log or a file has room for whole tables.
    """
    from rich.console import Console

    made = Console(highlight=False, markup=markup)
    if not made.is_terminal:
        made.width = max(made.width, LOG_COLUMNS)
    return made
