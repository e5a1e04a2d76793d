"""A comparison as JUnit XML, the shape that CI systems read: one test case a figure and one for each run's verdict."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from cliffwatch.compare.result import Change, Comparison, FigureChange, RunSide
from cliffwatch.compare.words import Cells, cells, rules
from cliffwatch.report.words import printable

SUITE = "cliffwatch compare"
CLASS = "cliffwatch.compare"


def render(comparison: Comparison) -> str:
    """The XML document, with its declaration. A regression is a failure, an INVALID run an error, too little data
    is skipped."""
    suite = Xml.Element("testsuite", name=SUITE)
    for which, run in (("base", comparison.base), ("new", comparison.new)):
        _trust(suite, which, run)
    for one in comparison.figures:
        _case(suite, one, rules(comparison))
    counts = {
        "tests": len(suite),
        "failures": len(suite.findall("*/failure")),
        "errors": len(suite.findall("*/error")),
        "skipped": len(suite.findall("*/skipped")),
    }
    totals = {name: str(count) for name, count in counts.items()} | {"time": "0"}
    suite.attrib.update(totals)
    del totals["skipped"]  # which the outer element does not have
    root = Xml.Element("testsuites", {"name": SUITE, **totals})
    root.append(suite)
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _trust(suite: Xml.Element, which: str, run: RunSide) -> None:
    case = Xml.SubElement(suite, "testcase", classname=CLASS, name=f"{which} run can be trusted", time="0")
    if run.invalid and run.verdict:
        reasons = printable("; ".join(reason.message for reason in run.verdict.reasons))
        Xml.SubElement(case, "error", type="invalid", message=f"{which} run is INVALID").text = reasons


def _case(suite: Xml.Element, one: FigureChange, rule: str) -> None:
    case = Xml.SubElement(suite, "testcase", classname=CLASS, name=one.label, time="0")
    text = cells(one)
    if one.change is Change.REGRESSED:
        message = f"{text.label} regressed: {text.base} to {text.new} ({text.difference})"
        Xml.SubElement(case, "failure", type=one.change, message=message).text = f"{_figures(text)}\n{rule}"
    elif one.change is Change.TOO_FEW_DATA:
        Xml.SubElement(case, "skipped", message=f"too little data: {text.note}")
    Xml.SubElement(case, "system-out").text = _figures(text)


def _figures(text: Cells) -> str:
    lines = (
        f"base {text.base} ({text.base_interval or 'no interval'}, n {text.base_n})",
        f"new {text.new} ({text.new_interval or 'no interval'}, n {text.new_n})",
        f"change {text.difference} ({text.difference_interval or 'no interval'}), p {text.p_value}",
        text.result,
    )
    return "\n".join(lines)
