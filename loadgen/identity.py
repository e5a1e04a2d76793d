"""Who we are to the target: bearer token, user and password, headers of a gateway, client certificate.

Secrets come from files and from the environment, never from a command line or a URL; they are in no log, message or
record. Each process reads its own, so that none travels between master and workers.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliffwatch.errors import InputError
from cliffwatch.http_header import HEADER_NAME

TOKEN_VARIABLES = ("CLIFFWATCH_API_KEY", "OPENAI_API_KEY")
BASIC_VARIABLE = "CLIFFWATCH_BASIC_AUTH"
HEADERS_VARIABLE = "CLIFFWATCH_HEADERS"
KEY_PASSWORD_VARIABLE = "CLIFFWATCH_CLIENT_KEY_PASSWORD"
_MAX_SECRET_BYTES = 16_384
_MAX_HEADERS = 32
_AUTHORIZATION = "authorization"
# what each request says anyway, and what belongs to the connection
_OURS = frozenset(
    {"host", "user-agent", "content-type", "content-length", "x-request-id", "connection", "transfer-encoding", "te",
     "trailer", "upgrade", "expect", "keep-alive", "proxy-authorization", "proxy-connection"}
)  # fmt: skip

SECRET_OPTIONS: dict[str, tuple[str, str]] = {
    "token-file": ("FILE", "File with the bearer token; else CLIFFWATCH_API_KEY or OPENAI_API_KEY."),
    "basic-auth-file": ("FILE", f"File with USER:PASSWORD for HTTP basic authentication; else {BASIC_VARIABLE}."),
    "headers-file": ("FILE", f"File of further headers, NAME: VALUE a line; else {HEADERS_VARIABLE}."),
    "client-cert": ("FILE", "Our certificate for the target, and its chain (PEM)."),
    "client-key": ("FILE", f"Its key, where not in the same file; a password is read from {KEY_PASSWORD_VARIABLE}."),
}
SECRET_NAMES = tuple(name.replace("-", "_") for name in SECRET_OPTIONS)
SECRET_FILE_VARIABLES = frozenset(f"CLIFFWATCH_{name.upper()}" for name in SECRET_NAMES)  # of plain Locust


@dataclass(frozen=True, slots=True)
class SecretFiles:
    """Where a process finds its secrets. Paths only, so that they may stand on a command line."""

    token_file: Path | None = None
    basic_auth_file: Path | None = None
    headers_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> SecretFiles:
        """From options by their names (`token_file`), absent ones None or empty; others are ignored."""
        return cls(**{name: Path(options[name]) for name in SECRET_NAMES if options.get(name)})

    def arguments(self, prefix: str) -> list[str]:
        """As options of another process on this machine; their names begin with `prefix`."""
        paths = ((name, getattr(self, name.replace("-", "_"))) for name in SECRET_OPTIONS)
        return [part for name, path in paths if path is not None for part in (prefix + name, str(path))]


NO_SECRETS = SecretFiles()


def read_headers(files: SecretFiles, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The header lines by which every request says who sends it; none where nothing was given.

    Raises:
        InputError: a file cannot be read, its text could not stand in a header, or two of them say who we are. No
            secret is quoted.
    """
    further = _further_headers(files.headers_file, environment)
    named = [line for line in further if line.lower().startswith(f"{_AUTHORIZATION}:")]
    said = (
        (files.token_file, TOKEN_VARIABLES, _bearer(files.token_file, environment)),
        (files.basic_auth_file, (BASIC_VARIABLE,), _basic(files.basic_auth_file, environment)),
        (files.headers_file, (HEADERS_VARIABLE,), named[0] if named else None),
    )
    given = [(str(_source(file, names, environment)), line) for file, names, line in said if line is not None]
    if len(given) > 1:
        raise InputError(
            "each say who we are", field=" and ".join(source for source, _ in given), allowed="one of them"
        )
    return (*(line for _, line in given if line not in further), *further)


def read_token(token_file: Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The bearer token from `token_file`, else from the environment, else None. It is never logged or recorded.

    Raises:
        InputError: the file cannot be read, or the token could not stand in a header. The token is not quoted.
    """
    text = _text(token_file, TOKEN_VARIABLES, environment)
    if text is not None and (not text or not all("!" <= char <= "~" for char in text)):
        source = _source(token_file, TOKEN_VARIABLES, environment)
        raise InputError("is not a bearer token", file=source, allowed="one line of printable ASCII without blanks")
    return text


def basic(user_and_password: str) -> str:
    """The value of an Authorization header for `USER:PASSWORD`."""
    return "Basic " + base64.b64encode(user_and_password.encode()).decode()


def _bearer(file: Path | None, environment: Mapping[str, str]) -> str | None:
    token = read_token(file, environment)
    return None if token is None else f"Authorization: Bearer {token}"


def _basic(file: Path | None, environment: Mapping[str, str]) -> str | None:
    text = _text(file, (BASIC_VARIABLE,), environment)
    if text is None:
        return None
    if not text.partition(":")[0] or ":" not in text or not text.isprintable():
        source = _source(file, (BASIC_VARIABLE,), environment)
        raise InputError("is not a user and password", file=source, allowed="one line, USER:PASSWORD")
    return f"Authorization: {basic(text)}"


def _further_headers(file: Path | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    text = _text(file, (HEADERS_VARIABLE,), environment)
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    source = _source(file, (HEADERS_VARIABLE,), environment)
    names = []
    for number, line in enumerate(lines, 1):
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
            raise InputError(f"line {number} is no header", file=source, allowed="NAME: VALUE in printable ASCII")
        if name.lower() in _OURS or name.lower() in names:
            what = "is given twice" if name.lower() in names else "is written by cliffwatch itself"
            raise InputError(f"{name} {what}", file=source, allowed="headers of your gateway, each once")
        names.append(name.lower())
        lines[number - 1] = f"{name}: {value}"
    if len(lines) > _MAX_HEADERS:
        raise InputError(f"holds {len(lines)} headers", file=source, allowed=f"{_MAX_HEADERS} at most")
    return tuple(lines)


def _source(file: Path | None, variables: tuple[str, ...], environment: Mapping[str, str]) -> object:
    """Where a secret is, or would be: for messages."""
    return file or next((name for name in variables if environment.get(name)), variables[0])


def _text(file: Path | None, variables: tuple[str, ...], environment: Mapping[str, str]) -> str | None:
    """A secret's text without blanks around it: from its file, else the first variable that is set, else None."""
    if file is None:
        text = next((environment[name] for name in variables if environment.get(name)), None)
    else:
        try:
            with file.open("rb") as stream:
                text = stream.read(_MAX_SECRET_BYTES + 1).decode("utf-8", "replace")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=file) from error
    if text is not None and len(text) > _MAX_SECRET_BYTES:
        source = _source(file, variables, environment)
        raise InputError("is too long", file=source, allowed=f"{_MAX_SECRET_BYTES} bytes at most")
    return None if text is None else text.strip()
