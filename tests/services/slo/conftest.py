"""A folder of real run folders, and the real application over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cliffwatch.records.manifest import RunState
from services.slo.app import create_app
from services.slo.store import RunStore
from tests.records.synthetic import SyntheticRun, make_manifest, make_run

SLO_TEXT = """\
name: chat
objectives:
  - {sli: ttft, threshold: 60ms, target: 95%}
  - {sli: ttft, threshold: 60ms, target: 95%, input_tokens: {min: 1k, max: 8k}}
  - {sli: itl, threshold: 20ms, target: 99%}
  - {sli: availability, target: 99.9%}
cost: {gpu_hour_usd: 1.92, gpus: 1}
"""


def named_run(root: Path, name: str, rows: int, *, slo: str | None = SLO_TEXT, **options: object) -> SyntheticRun:
    """A run folder of that name, created later than those made before it."""
    created = 1_750_000_000.0 + len(list(root.iterdir()))
    run = make_run(root / name, rows, manifest=make_manifest(run_id=name, created_unix_s=created), **options)  # type: ignore[arg-type]
    if slo is not None:
        (root / name / "slo.yaml").write_text(slo, encoding="utf-8")
    return run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def run(root: Path) -> SyntheticRun:
    """A closed run of 4,000 rows with 3 % failures, judged by SLO_TEXT."""
    return named_run(root, "closed", 4000, failures=0.03)


@pytest.fixture
def live(root: Path) -> SyntheticRun:
    return named_run(root, "live", 1000, state=RunState.RUNNING, parts=2)


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    with TestClient(create_app(RunStore(root)), raise_server_exceptions=False) as client:
        yield client
