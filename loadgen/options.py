"""Options that `cliffwatch run` and `cliffwatch capacity` share: how a target is asked and trusted, and who we are.

Empty means not given.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from loadgen.settings import OPTIONS


def help_of(name: str) -> str:
    """What is said of an option of `OPTIONS`."""
    return OPTIONS[name][1]


Model: TypeAlias = Annotated[str, typer.Option(help=help_of("model"))]
Endpoint: TypeAlias = Annotated[str, typer.Option(help=help_of("endpoint"))]
Tokenizer: TypeAlias = Annotated[str, typer.Option(help=help_of("tokenizer"))]
CaFile: TypeAlias = Annotated[str, typer.Option("--ca-file", help=help_of("ca-file"))]
TokenFile: TypeAlias = Annotated[str, typer.Option("--token-file", help=help_of("token-file"))]
BasicAuthFile: TypeAlias = Annotated[str, typer.Option("--basic-auth-file", help=help_of("basic-auth-file"))]
HeadersFile: TypeAlias = Annotated[str, typer.Option("--headers-file", help=help_of("headers-file"))]
ClientCert: TypeAlias = Annotated[str, typer.Option("--client-cert", help=help_of("client-cert"))]
ClientKey: TypeAlias = Annotated[str, typer.Option("--client-key", help=help_of("client-key"))]
Insecure: TypeAlias = Annotated[bool, typer.Option("--insecure", help="Do not verify the target's TLS certificate.")]
