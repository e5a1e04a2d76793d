"""`cliffwatch link-key`: a new key for master and workers, to a file of its own or to standard output."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import typer

from cliffwatch.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
def link_key(
    file: str = typer.Argument("", metavar="[FILE]", help="New file for the key, readable by you only; else printed."),
) -> None:
    """Make a key that a run's master and workers share: `--link-key-file FILE`, or CLIFFWATCH_LINK_KEY.

    With it they know each other, and what they say is encrypted.
    """
    key = secrets.token_urlsafe(32)
    if not file:
        typer.echo(key)
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror}", file=Path(file), allowed="a new file") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(key + "\n")
