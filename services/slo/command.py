"""`cliffwatch serve`: the SLO service on a socket of this machine."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

import typer
import uvicorn

from cliffwatch.cli.prometheus import Prometheus, secret
from cliffwatch.cli.prometheus import prometheus as server_at
from cliffwatch.cli.prometheus_options import CA_FILE, TOKEN_FILE
from cliffwatch.errors import ExitCode, InputError
from cliffwatch.slo.live.watched import load_watched, slo_files
from cliffwatch.slo.spec import load_run_slo
from services.slo.app import create_app
from services.slo.runbooks import load_runbooks
from services.slo.store import RunStore
from services.slo.watcher import Watcher

MAX_CONNECTIONS = 256
KEEP_ALIVE_S = 5
GRACE_S = 5

app = typer.Typer(add_completion=False)


@app.command()
def serve(
    runs: Path = typer.Option(..., help="A folder of run folders, or one run folder."),
    slo: str | None = typer.Option(None, help="Judge every run by this SLO file instead of its own."),
    watch: list[Path] = typer.Option(
        [],
        metavar="FILE|DIR",
        help="SLO files, or folders of them, to watch on --prometheus; may be given several times.",
    ),
    prometheus: str = typer.Option(
        "", metavar="URL", help="The Prometheus server for --watch, and for the engine's side of each run."
    ),
    prometheus_token_file: Path | None = TOKEN_FILE,
    prometheus_ca_file: Path | None = CA_FILE,
    webhook_token_file: Path | None = typer.Option(
        None, metavar="FILE", help="Holds the bearer token that Alertmanager must send to /v1/alertmanager."
    ),
    runbooks: Path | None = typer.Option(
        None, metavar="DIR", help="Runbooks, a Markdown file for each alert's name, to serve beneath /runbooks."
    ),
    host: str = typer.Option("127.0.0.1", help="Address to listen on; 0.0.0.0 is every interface, without a login."),
    port: int = typer.Option(8080, min=0, max=65535, help="Port to listen on; 0 takes a free one."),
) -> None:
    """Serve the SLO API and web page over a folder of runs, live while a run goes on. Reads only.

    Ctrl-C (exit code 130) or SIGTERM (exit code 0) ends it, after the requests under way.
    """
    signal.signal(signal.SIGTERM, _ended)  # uvicorn raises the signal again once it has shut down
    token = None if webhook_token_file is None else secret(webhook_token_file, field="--webhook-token-file")
    server = server_at(prometheus, prometheus_token_file, ca_file=prometheus_ca_file) if prometheus else None
    service = create_app(
        RunStore(runs),
        None if slo is None else load_run_slo(slo),
        watcher=_watcher(watch, server),
        webhook_token=token,
        server=server,
        runbooks=None if runbooks is None else load_runbooks(runbooks),
    )
    with _listen(host, port) as listener:
        address = _address(listener)
        typer.echo(f"cliffwatch serves {runs} at {address}/ (API: {address}/openapi.json); Ctrl-C ends it")
        config = uvicorn.Config(
            service,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
        )
        uvicorn.Server(config).run(sockets=[listener])


def _watcher(watch: list[Path], server: Prometheus | None) -> Watcher | None:
    if not watch:
        return None
    if server is None:
        raise InputError("is missing: --watch needs it", field="--prometheus", allowed="the address of a Prometheus")
    return Watcher(load_watched(slo_files(watch)), server)


def _ended(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(ExitCode.OK)


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises InputError saying which of host and port cannot be had, and what would do."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"cannot be resolved: {error}", field="--host", value=host, allowed="an address or name of this machine"
        ) from error
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise _refusal(error, host, port) from error
    return listener


def _refusal(error: OSError, host: str, port: int) -> InputError:
    if error.errno == errno.EADDRINUSE:
        return InputError("is taken", field="--port", value=port, allowed="another port, or 0 for a free one")
    if error.errno == errno.EACCES:
        return InputError("may not be opened by this user", field="--port", value=port, allowed="1024 or more")
    if error.errno == errno.EADDRNOTAVAIL:
        return InputError("is not of this machine", field="--host", value=host, allowed="127.0.0.1, ::1 or 0.0.0.0")
    return InputError(f"cannot be opened: {os.strerror(error.errno or 0)}", field="--port", value=port)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
