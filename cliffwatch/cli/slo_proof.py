"""`cliffwatch slo test`: have promtool prove that the alerts of an SLO file fire when they must, and only then."""

from __future__ import annotations

import json
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cliffwatch.errors import ExitCode, InputError
from cliffwatch.slo.spec import SloFile, load_slo
from cliffwatch.units import format_seconds, format_share

if TYPE_CHECKING:
    from cliffwatch.slo.prometheus.proof import Cell, Proof

RULES = "rules.yml"


def prove_slo(
    file: str = typer.Argument(..., metavar="FILE", help="An SLO file with a section `watch`."),
    promtool: str = typer.Option("", metavar="PATH", help="Default: promtool on the search path, else in .tools."),
    rules: str = typer.Option(
        "", metavar="PATH", help="Test these rules, as deployed; default: those compiled of FILE."
    ),
    out: str = typer.Option("", metavar="DIR", help="Keep rules and test files here, for promtool test rules."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines instead of the tables."),
) -> None:
    """Make tests of every objective's alerts and run them by promtool: outage, slow burn, just under, idle hour,
    counter reset, missing series, recovery, rolling upgrade; and the table of when each alert fires.

    Exit codes: 0 every alert as computed, 1 one fires when it must not or is silent when it must not, 2 wrong input,
    4 no promtool.
    """
    from cliffwatch.cli.promtool import PromtoolTests, find_promtool
    from cliffwatch.slo.prometheus.proof import as_json as json_of
    from cliffwatch.slo.prometheus.proof import prove
    from cliffwatch.slo.prometheus.proof_composite import prove_composite
    from cliffwatch.slo.prometheus.rules import composites_of

    slo = _outside_maintenance(load_slo(file))
    text = _rules(slo, file, rules)
    assert slo.watch is not None  # noqa: S101  compiling refuses a file without it
    program = find_promtool(promtool)
    with nullcontext(_folder(out)) if out else tempfile.TemporaryDirectory(prefix="cliffwatch-") as folder:
        tests = PromtoolTests(program, Path(folder), RULES)
        version = tests.version()
        tests.keep(RULES, text)
        tests.check()
        proofs: list[Proof] = []
        for objective in slo.objectives:
            typer.echo(f"testing {objective.label}", err=True)
            proofs.append(prove(slo, slo.watch, objective, tests))
        composites: list[Proof] = []
        for one, promise in composites_of(slo, slo.watch, source=file):
            typer.echo(f"testing composite {one.name}", err=True)
            composites.append(prove_composite(slo, slo.watch, one, promise, tests, proofs))
    everything = [*proofs, *composites]
    if as_json:
        typer.echo(json.dumps(json_of(slo.name, version, proofs, composites), ensure_ascii=False, indent=2))
    else:
        for proof in everything:
            _show(slo.name, proof)
        _sum_up(everything, version, out)
    raise typer.Exit(ExitCode.SLO_MISSED if any(proof.misses for proof in everything) else ExitCode.OK)


def _outside_maintenance(slo: SloFile) -> SloFile:
    """Tests have a clock of their own, which may stand within a window of maintenance, where nothing counts."""
    if slo.watch is None:
        return slo
    exclude = slo.watch.exclude.model_copy(update={"maintenance": ()})
    return slo.model_copy(update={"watch": slo.watch.model_copy(update={"exclude": exclude})})


def _rules(slo: SloFile, file: str, rules: str) -> str:
    """The rules to test; compiled even where others are given: what is refused has no right answers."""
    from cliffwatch.config import read_config_text
    from cliffwatch.slo.prometheus.files import rule_file
    from cliffwatch.slo.prometheus.rules import compile_rules

    compiled = rule_file(compile_rules(slo, source=file))
    return read_config_text(Path(rules)) if rules else compiled


def _folder(out: str) -> str:
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", file=out, allowed="a folder") from error
    return out


def _show(slo: str, proof: Proof) -> None:
    """The table of one objective, and what does not hold."""
    if proof.unproven:
        typer.echo(f"{slo} {proof.key}: {proof.label}: not tested: {proof.unproven}")
        return
    names = list(dict.fromkeys(cell.alert for cell in proof.table))
    target = "" if proof.target is None else f", {format_share(proof.target)}"
    typer.echo(f"{slo} {proof.key}: {proof.label}{target}; fires after")
    typer.echo(f"  when so much {proof.bad}:")
    typer.echo("  bad" + "".join(f"{name:>16}" for name in names))
    for bad in dict.fromkeys(cell.bad for cell in proof.table):
        cells = {cell.alert: cell for cell in proof.table if cell.bad == bad}
        typer.echo(f"{format_share(bad):>5}" + "".join(f"{_shown(cells[name]):>16}" for name in names))
    told: set[tuple[str, str]] = set()  # one alert may be wrong at several minutes of a scenario
    for miss in proof.misses:
        if (miss.scenario, miss.about) not in told:
            found = f"expected {miss.expected}, seen {miss.seen}"
            typer.echo(f"  WRONG {slo} {proof.key} {miss.about}, scenario {miss.scenario!r}: {found}")
        told.add((miss.scenario, miss.about))


def _shown(cell: Cell) -> str:
    if cell.proven is None:
        return "at threshold"
    when = "never" if cell.fires_after_s is None else format_seconds(cell.fires_after_s)
    return when if cell.proven else f"{when} WRONG"


def _sum_up(proofs: list[Proof], version: str, out: str) -> None:
    checks, wrong = sum(proof.checks for proof in proofs), sum(len(proof.misses) for proof in proofs)
    scenarios = sum(len(proof.scenarios) for proof in proofs)
    found = f"{wrong} do not hold" if wrong else "all hold"
    typer.echo(f"{scenarios} scenarios, {checks} expectations: {found} (promtool {version})")
    if untested := [proof.key for proof in proofs if proof.proven is None]:
        typer.echo(f"not tested: {', '.join(untested)}")
    if out:
        typer.echo(f"kept in {out}: promtool test rules {out}/*.test.yml")
