"""The one error hierarchy, and the exit code that each kind of ending has."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every `cliffwatch` command."""

    OK = 0
    SLO_MISSED = 1
    BAD_INPUT = 2
    RUN_INVALID = 3
    UNREACHABLE = 4
    INTERRUPTED = 130


class CliffwatchError(Exception):
    """Something a person can mend, said in the terms they know.

    Attributes:
        file: the file (or URL, or option) the trouble is in.
        field: where in it, such as `input_tokens.min` or `line 12`.
        value: what was found, shortened for display.
        allowed: what would have been right.
    """

    exit_code: ExitCode = ExitCode.BAD_INPUT

    def __init__(
        self,
        message: str,
        *,
        file: object | None = None,
        field: str | None = None,
        value: object | None = None,
        allowed: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = None if file is None else str(file)
        self.field = field
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        place = ": ".join(_printable(part) for part in (self.file, self.field) if part)
        text = f"{place}: {self.message}" if place else self.message
        if self.value is not None:
            text += f"; got {shorten(self.value)}"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        return text


class InputError(CliffwatchError):
    """A file, option or value that the person gave cannot be used."""


class RunError(CliffwatchError):
    """A run folder that is missing, damaged, or already taken."""


class UnreachableError(CliffwatchError):
    """The target or a dependency could not be reached."""

    exit_code = ExitCode.UNREACHABLE


def shorten(value: object, limit: int = 80) -> str:
    """`repr` of a value, cut to `limit` characters so that a huge input cannot flood a terminal."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _printable(text: str) -> str:
    """Text without control characters, which a file or key name may smuggle to a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
