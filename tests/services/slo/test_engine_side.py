"""The engine's side of a run: told, or why not; a Prometheus that is away is a 503 and leaves the rest alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from cliffwatch.cli.prometheus import Prometheus
from services.slo.app import create_app
from services.slo.engine_side import NO_PROMETHEUS
from services.slo.store import RunStore
from tests.records.synthetic import SyntheticRun

ROUTE = "/v1/runs/{}/engine"


@pytest.fixture
def asking(root: Path) -> Iterator[TestClient]:
    """The service with a Prometheus at a port where nobody listens."""
    app = create_app(RunStore(root), server=Prometheus("http://127.0.0.1:9"))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def test_without_a_prometheus_it_says_how_to_have_it(client: TestClient, run: SyntheticRun) -> None:
    assert client.get(ROUTE.format("nobody")).status_code == 404
    assert client.get(ROUTE.format("closed")).json() == {"beside": None, "note": NO_PROMETHEUS}


def test_a_run_that_goes_on_says_so(asking: TestClient, live: SyntheticRun) -> None:
    answer = asking.get(ROUTE.format("live"))
    assert answer.status_code == 200
    assert answer.json()["beside"] is None and "still goes on" in answer.json()["note"]


def test_a_prometheus_that_is_away_is_a_refusal_of_this_part_alone(asking: TestClient, run: SyntheticRun) -> None:
    refused = asking.get(ROUTE.format("closed"))
    assert (refused.status_code, refused.json()["title"]) == (503, "Prometheus cannot be asked")
    assert asking.get("/v1/runs/closed/outcomes").status_code == 200
