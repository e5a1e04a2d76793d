"""The options that say how to reach a Prometheus, the same for each command that asks one."""

from __future__ import annotations

import typer

TOKEN_FILE = typer.Option(
    None,
    "--prometheus-token-file",
    metavar="FILE",
    help="Holds its bearer token; else CLIFFWATCH_PROMETHEUS_TOKEN, where that is set.",
)
CA_FILE = typer.Option(
    None,
    "--prometheus-ca-file",
    metavar="FILE",
    help="Authorities (PEM) to trust for its certificate, in place of the system's.",
)
