"""The HTML report: self-contained, safe against what a run folder may hold, bounded in size."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from cliffwatch.records.manifest import Cost, RunState
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, RequestRow
from cliffwatch.report import html
from cliffwatch.report.summary import build
from tests.records.synthetic import make_run
from tests.slo.rows import refused, run_of, served

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028"
SLO = f"""
name: '{EVIL}'
objectives:
  - {{sli: ttft, threshold: 1s, target: 95%}}
  - {{sli: availability, target: 99%}}
"""


class Page(HTMLParser):
    """What a browser would make of a file: its elements, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self.scripts[-1] += data
        else:
            self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def page_of(folder: Path) -> Page:
    return Page(html.render(RunReader(folder), build(folder)))


@pytest.fixture
def rows() -> list[RequestRow]:
    return [served(number) for number in range(300)] + [refused(300, Outcome.HTTP_5XX, error=EVIL)]


def test_needs_nothing_else(tmp_path: Path, rows: list[RequestRow]) -> None:
    run = run_of(tmp_path / "run", rows, slo=SLO)
    page = page_of(run.dir)
    assert page.count("link") == page.count("img") == page.count("iframe") == 0
    assert not [attributes for _, attributes in page.elements if "src" in attributes]
    policies = [attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"]


def test_what_a_run_holds_stays_text(tmp_path: Path, rows: list[RequestRow]) -> None:
    run = run_of(
        tmp_path / "run", rows, slo=SLO, name=EVIL, model=EVIL, target=EVIL, warnings=(EVIL,), host={EVIL: EVIL}
    )
    page = page_of(run.dir)
    assert len(page.scripts) == 7
    assert "alert(1)" not in "".join(page.scripts[1:])
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert EVIL.strip() in "".join(page.words)


def test_the_data_is_json_and_unknown_is_null(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [refused(number, Outcome.CONNECT, sent=False) for number in range(5)], slo=SLO)
    data = json.loads(page_of(run.dir).scripts[0])
    assert data["objective-0"] == {
        "kind": "attainment", "label": "TTFT ≤ 1 s", "attainment": None, "low": None, "high": None, "target": 0.95,
        "status": "too_few_data",
    }  # fmt: skip
    assert data["distribution-ttft"]["counts"] == []


def test_every_plot_has_its_element_and_renderer(tmp_path: Path, rows: list[RequestRow]) -> None:
    page = page_of(run_of(tmp_path / "run", rows, slo=SLO).dir)
    plots = json.loads(page.scripts[0])
    wanted = {attributes["data-plot"] for _, attributes in page.elements if "data-plot" in attributes}
    chosen = {attributes["value"] for tag, attributes in page.elements if tag == "option"}
    assert wanted | chosen == set(plots)
    renderers = re.search(r"return \{\s+(.*?),\n    parts:", page.scripts[2])
    assert renderers
    added = re.findall(r"^cliffwatch\.(\w+) = ", "\n".join(page.scripts[3:6]), re.MULTILINE)
    assert {plot["kind"] for plot in plots.values()} <= {*renderers[1].split(", "), *added}


def test_is_a_document_that_can_be_walked(tmp_path: Path, rows: list[RequestRow]) -> None:
    page = page_of(run_of(tmp_path / "run", rows, slo=SLO).dir)
    assert (page.count("h1"), page.count("main"), page.count("title")) == (1, 1, 1)
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(attributes.get("scope") for tag, attributes in page.elements if tag == "th")
    assert dict(page.elements)["html"] == {"lang": "en"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"state": RunState.PARTIAL}, "The run is partial (stopped by SIGTERM)"),
        ({"slo": SLO}, "All 2 objectives met"),
        ({}, "No objectives were given."),
        ({"cost": Cost(gpu_hour_usd=1.92)}, "1 GPU at 1.92 USD an hour"),
        ({"open_loop": False}, "closed loop"),
    ],
)
def test_says_what_a_reader_must_know(tmp_path: Path, options: dict[str, object], says: str) -> None:
    run = run_of(tmp_path / "run", [served(number) for number in range(500)], **options)  # type: ignore[arg-type]
    assert says in " ".join("".join(page_of(run.dir).words).split())


def test_an_invalid_run_says_so_first(tmp_path: Path) -> None:
    text = html.render(RunReader(run_of(tmp_path / "run", []).dir), build(tmp_path / "run"))
    assert text.index("Do not rely on these figures") < text.index("No objectives were given")


def test_size_does_not_grow_with_the_run(tmp_path: Path) -> None:
    sizes = []
    for n in (1000, 20_000):
        run = make_run(tmp_path / f"run-{n}", n, gaps=False)
        sizes.append(len(html.render(RunReader(run.dir), build(run.dir))))
    assert sizes[1] < 400_000
    assert sizes[1] - sizes[0] < 60_000


def test_our_own_assets_can_stand_inside_their_elements() -> None:
    for path in html.ASSETS.rglob("*.*"):
        if path.suffix in {".js", ".css"}:
            text = path.read_text(encoding="utf-8").lower()
            assert "</script" not in text
            assert "</style" not in text
            assert "<!--" not in text
