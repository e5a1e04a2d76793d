from __future__ import annotations

import json

from benchmarks.loadgen import page


def test_the_page_says_what_the_saved_results_say():
    assert page.PAGE.read_text() == page.text()  # page.write() writes it again


def test_every_saved_row_stands_on_the_page():
    names = {json.loads(path.read_text())["name"] for path in page.RESULTS.glob("loadgen_*.json")}
    assert names <= set(page.TITLES)
