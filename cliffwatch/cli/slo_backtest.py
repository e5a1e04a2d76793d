"""`cliffwatch slo backtest`: what an SLO file would have done, had its rules been loaded in the past."""

from __future__ import annotations

from pathlib import Path

import typer

from cliffwatch.cli.prometheus_options import CA_FILE, TOKEN_FILE

ATTEMPTS = 4  # while the server says that it is busy


def backtest(
    file: Path = typer.Argument(..., metavar="FILE", help="An SLO file with a section `watch`."),
    prometheus: str = typer.Option(..., metavar="URL", help="The Prometheus server that has the history."),
    start: str = typer.Option("30d ago", "--from", metavar="T", help="ISO 8601 (UTC), Unix seconds or `30d ago`."),
    end: str = typer.Option("now", "--to", metavar="T", help="As --from."),
    every: str = typer.Option("1m", metavar="TIME", help="Between evaluations: Prometheus's evaluation_interval."),
    incidents: Path | None = typer.Option(
        None, metavar="FILE", help="What really happened: YAML or CSV of start, end, name; gives precision and recall."
    ),
    match_within: str = typer.Option("10m", metavar="TIME", help="How far an alert may lie from its incident."),
    targets: str = typer.Option("", metavar="LIST", help="What-if: other targets, such as 99%,99.5%."),
    thresholds: str = typer.Option("", metavar="LIST", help="What-if: other thresholds, on bucket edges."),
    windows: str = typer.Option(
        "", metavar="LIST", help="What-if: other windows, such as standard,page:1h/5m:2%+ticket:3d/6h:10%."
    ),
    curve: Path | None = typer.Option(None, "--csv", metavar="PATH", help="Write the budget at every evaluation."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines."),
    prometheus_token_file: Path | None = TOKEN_FILE,
    prometheus_basic_auth_file: Path | None = typer.Option(
        None, metavar="FILE", help="Holds USER:PASSWORD; else CLIFFWATCH_PROMETHEUS_BASIC_AUTH, where that is set."
    ),
    prometheus_ca_file: Path | None = CA_FILE,
    timeout: float = typer.Option(60.0, min=0.1, max=600.0, help="Seconds that one question may take."),
) -> None:
    """Say what an SLO file would have done over a span of the past: pages, tickets, budget, and what-if.

    Its alerts are those that Prometheus itself would have fired with the compiled rules. Exit code 4 where Prometheus
    cannot be asked.
    """
    from cliffwatch.cli import slo_replay
    from cliffwatch.cli.prometheus import prometheus as server_at
    from cliffwatch.slo.backtest.whatif import Options

    if curve is not None:
        slo_replay.refuse_csv(curve)
    times = slo_replay.Times.read(start, end, every, match_within)
    server = server_at(
        prometheus,
        prometheus_token_file,
        basic_auth_file=prometheus_basic_auth_file,
        ca_file=prometheus_ca_file,
        timeout_s=timeout,
        attempts=ATTEMPTS,
    )
    tests, span = slo_replay.run(file, server, times, Options.read(targets, thresholds, windows), incidents)
    slo_replay.show(tests, span, curve=curve, as_json=as_json)
