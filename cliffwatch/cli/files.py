"""Files that commands write."""

from __future__ import annotations

from pathlib import Path

from cliffwatch.errors import InputError


def write_text(path: Path, text: str) -> None:
    """Write a file, in place of one that is there. Raises InputError where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error


def write_new(path: Path, text: str) -> None:
    """Write a file that must not be there yet. Raises InputError."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise InputError("exists already", file=path, allowed="a new file") from error
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error
