"""Runbooks: a page for every alert that can be compiled, served as HTML that its Markdown cannot break out of."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from starlette.testclient import TestClient

from cliffwatch.errors import InputError
from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import load_slo
from services.slo.app import create_app
from services.slo.runbooks import MAX_BYTES, load_runbooks
from services.slo.store import RunStore
from tests.servers.engines import ROOT

PAGES = ROOT / "docs" / "runbooks"


def client(root: Path, folder: Path) -> TestClient:
    return TestClient(create_app(RunStore(root), runbooks=load_runbooks(folder)))


@pytest.mark.parametrize("file", sorted((ROOT / "deploy/slo").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_alert_of_the_stack_has_its_page(root: Path, file: Path) -> None:
    slo = load_slo(str(file))
    rules = [rule for group in yaml.safe_load(rule_file(compile_rules(slo)))["groups"] for rule in group["rules"]]
    links = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules if "alert" in rule}
    assert {"SloBurn1h", "SloBurn3d", "EngineDown", "EngineHung"} <= set(links)
    service = client(root, PAGES)
    for alert, url in links.items():
        answer = service.get(url.removeprefix("http://127.0.0.1:8080"))
        assert answer.status_code == 200, alert
        assert f"<h1>{alert} " in answer.text


def test_the_index_links_every_page(root: Path) -> None:
    index = client(root, PAGES).get("/runbooks").text
    for path in PAGES.glob("*.md"):
        if path.stem != "index":
            assert f'<a href="/runbooks/{path.stem}">' in index


def test_a_folder_without_an_index_is_listed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "SloBurn1h.md").write_text("# what to do")
    assert '<a href="/runbooks/SloBurn1h">' in client(root, tmp_path).get("/runbooks").text


def test_html_and_scripts_in_a_page_are_only_shown(root: Path, tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text("<script>alert(1)</script> [x](javascript:alert(1))")
    text = client(root, tmp_path).get("/runbooks/A").text
    assert "<script" not in text
    assert 'href="javascript' not in text


@pytest.mark.parametrize("name", ["B", "..%2Fsecret", "A.md", "%00"])
def test_what_is_no_page_is_not_found(root: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "A.md").write_text("fine")
    answer = client(root, tmp_path / "pages").get(f"/runbooks/{name}")
    assert answer.status_code == 404
    assert "secret" not in answer.text.replace("secret.md", "")


def test_folders_that_hold_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds 0 pages"):
        load_runbooks(tmp_path)
    with pytest.raises(InputError):
        load_runbooks(tmp_path / "absent")
    (tmp_path / "A.md").write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(InputError, match="too large"):
        load_runbooks(tmp_path)
    (tmp_path / "A.md").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        load_runbooks(tmp_path)
