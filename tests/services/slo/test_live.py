"""The API over SLOs on Prometheus: fresh, old and unknown told apart, whatever Prometheus does; the webhook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient

from cliffwatch.cli.processes import wait_for
from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.slo.live.watched import load_watched
from services.slo import watcher as watching
from services.slo.app import create_app
from services.slo.store import RunStore
from services.slo.watcher import Watcher
from tests.slo.live.records import SLO, records
from tests.slo.live.scripted import Scripted, answer, serving

TOKEN = "a-secret"
JSON = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
LABELS = {"alertname": "SloBurn1h", "slo": "chat", "severity": "page"}


@pytest.fixture
def server() -> Iterator[Scripted]:
    with serving(records(0.001)) as scripted:
        yield scripted


@pytest.fixture
def live(root: Path, server: Scripted, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The service over the scripted Prometheus; every look asks anew."""
    monkeypatch.setattr(watching, "FRESH_S", 1e-6)
    (root.parent / "slo.yaml").write_text(SLO)
    watcher = Watcher(load_watched([root.parent / "slo.yaml"]), Prometheus(server.url, timeout_s=2.0))
    with TestClient(
        create_app(RunStore(root), watcher=watcher, webhook_token=TOKEN), raise_server_exceptions=False
    ) as it:
        yield it


def down(path: str, query: str) -> tuple[int, bytes]:
    return 503, b'{"status":"error","error":"starting up"}'


def test_lists_an_slo_with_its_worst_objective(live: TestClient) -> None:
    """0.1 % bad of a budget of 1 %."""
    body = live.get("/v1/slos").json()
    (slo,) = body["slos"]
    assert (slo["name"], slo["state"], slo["page"]) == ("chat", "good", False)
    assert slo["objectives"][0]["budget_left"] == pytest.approx(0.9)
    assert body["source"]["problem"] is None


def test_shows_one_slo_in_full(live: TestClient, server: Scripted) -> None:
    server.script = records(0.2)
    slo = live.get("/v1/slos/chat").json()["slo"]
    (group,) = slo["objectives"][0]["groups"]
    assert group["fires"] == ["SloBurn1h", "SloBurn6h", "SloBurn1d", "SloBurn3d"]
    assert group["burns"][0]["long"] == {
        "window_s": 3600, "bad_ratio": pytest.approx(0.2), "burn_rate": pytest.approx(20), "events": 36_000,
    }  # fmt: skip
    assert slo["page"]


def test_an_old_reading_is_shown_as_old_and_the_service_stays_up(live: TestClient, server: Scripted) -> None:
    before = live.get("/v1/slos").json()
    server.script = down
    after = live.get("/v1/slos").json()
    assert "starting up" in after["source"]["problem"]
    assert after["source"]["as_of_unix_s"] == before["source"]["as_of_unix_s"]
    assert after["slos"][0]["state"] == "stale"
    assert after["slos"][0]["objectives"][0]["budget_left"] == pytest.approx(0.9)
    assert live.get("/healthz").status_code == 200
    server.script = records(0.001)
    assert live.get("/v1/slos").json()["slos"][0]["state"] == "good"


def test_a_prometheus_that_restarts_between_two_questions_leaves_what_it_did_not_tell_unknown(
    live: TestClient, server: Scripted
) -> None:
    """The records came; how many events are behind them did not: never 0, never the last round's."""
    good = records(0.001)
    server.script = lambda path, query: good(path, query) if query.startswith("{__name__") else down(path, query)
    (objective,) = live.get("/v1/slos/chat").json()["slo"]["objectives"]
    assert objective["groups"][0]["budget_left"] == pytest.approx(0.9)
    assert any("number of events is not known: Prometheus" in note for note in objective["notes"])
    assert live.get("/v1/slos/chat").json()["slo"]["prometheus_alerts"] is None
    server.script = good
    (objective,) = live.get("/v1/slos/chat").json()["slo"]["objectives"]
    assert not any("not known" in note for note in objective["notes"])


def test_a_thousand_groups_are_listed_by_the_worst_and_answered_in_bounds(live: TestClient, server: Scripted) -> None:
    """More than `max_groups` (rules would record none of them): the list stays one line an objective."""
    one = records(0.001)
    names = [f"model-{number:04}" for number in range(1_000)]

    def many(path: str, query: str) -> tuple[int, bytes]:
        status, body = one(path, query)
        document = json.loads(body)
        if "result" in document.get("data", {}):
            rows = document["data"]["result"]
            document["data"]["result"] = [
                row | {"metric": row["metric"] | {"model_name": name}} for name in names for row in rows
            ]
        return status, json.dumps(document).encode()

    server.script = many
    answered = live.get("/v1/slos")
    (objective,) = answered.json()["slos"][0]["objectives"]
    assert objective["groups"] == 1_000
    assert objective["budget_left"] == pytest.approx(0.9)
    assert len(answered.content) < 2_000
    assert len(live.get("/v1/slos/chat").json()["slo"]["objectives"][0]["groups"]) == 1_000


def test_a_prometheus_that_never_answered_has_no_data(live: TestClient, server: Scripted) -> None:
    server.script = down
    body = live.get("/v1/slos").json()
    assert body["source"]["as_of_unix_s"] is None
    assert body["slos"][0]["state"] == "no_data"
    assert body["slos"][0]["objectives"][0]["budget_left"] is None


def test_a_slow_prometheus_holds_nobody_longer_than_the_deadline(
    live: TestClient, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.get("/v1/slos")
    monkeypatch.setattr(watching, "DEADLINE_S", 0.1)
    server.delay_s = 0.5
    body = live.get("/v1/slos").json()
    assert "not answered within 0.1 s" in body["source"]["problem"]
    assert body["slos"][0]["state"] == "stale"


def test_askers_of_one_moment_share_one_reading(
    live: TestClient, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FRESH_S", 60.0)
    server.delay_s = 0.1
    with ThreadPoolExecutor(10) as pool:
        states = list(pool.map(lambda _: live.get("/v1/slos").json()["slos"][0]["state"], range(30)))
    assert set(states) == {"good"}
    assert len([query for _, query in server.asked if query.startswith("{__name__")]) == 1


def test_a_reading_is_told_while_the_next_is_on_its_way(
    live: TestClient, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = live.get("/v1/slos").json()["source"]["as_of_unix_s"]
    monkeypatch.setattr(watching, "FRESH_S", 60.0)
    monkeypatch.setattr(watching, "RENEW_S", 0.0)
    answers, release = records(0.001), Event()

    def held(path: str, query: str) -> tuple[int, bytes]:
        assert release.wait(5)
        return answers(path, query)

    server.script = held
    for _ in range(3):
        assert live.get("/v1/slos").json()["source"]["as_of_unix_s"] == first
    release.set()
    assert wait_for(lambda: live.get("/v1/slos").json()["source"]["as_of_unix_s"] > first, timeout_s=5)


def test_metrics_have_figures_and_leave_out_what_is_not_known(live: TestClient, server: Scripted) -> None:
    labels = 'group="model_name=m",objective="ttft-2.5s-99pct",slo="chat"'
    text = live.get("/metrics").text
    assert f"cliffwatch_slo_budget_left_ratio{{{labels}}} 0.9" in text
    assert f'cliffwatch_slo_burn_rate{{{labels},window="1h"}} 0.1' in text
    # 2 % of 30 days' budget in an hour; and what is left of 30 x 1 % of bad days, at 0.1 % a day
    limit = re.search(
        r'cliffwatch_slo_burn_limit{alert="SloBurn1h",group="model_name=m",.*severity="page".*} (\S+)', text
    )
    assert limit and float(limit[1]) == pytest.approx(0.02 * 30 * 24)
    lasts = re.search(rf"cliffwatch_slo_budget_lasts_seconds{{{labels}}} (\S+)", text)
    assert lasts and float(lasts[1]) == pytest.approx(0.9 * 30 * 86_400 * 0.01 / 0.001)
    assert f'cliffwatch_slo_state{{{labels},state="good"}} 1.0' in text
    server.script = records(0.0, events=0.0)
    text = live.get("/metrics").text
    assert "cliffwatch_slo_attainment_ratio{" not in text
    assert f'cliffwatch_slo_state{{{labels},state="no_traffic"}} 1.0' in text
    server.script = down
    text = live.get("/metrics").text
    assert "cliffwatch_slo_burn_rate{" not in text
    assert "cliffwatch_slo_prometheus_up 0.0" in text


def test_history_is_on_one_grid_with_gaps(live: TestClient, server: Scripted) -> None:
    """Half of the budget spent at the last instant, nothing known before."""

    def script(path: str, query: str) -> tuple[int, bytes]:
        own = {"slo": "chat", "objective": "ttft-2.5s-99pct", "model_name": "m"}
        rows = [
            {
                "metric": {"__name__": f"cliffwatch_slo:bad:ratio{window}", **own},
                "values": [[server.ends[-1], str(bad)]],
            }
            for window, bad in (("30d", 0.005), ("1h", 0.02))
        ]
        return 200, answer({"resultType": "matrix", "result": rows})

    server.script = script
    body = live.get("/v1/slos/chat/history", params={"span_s": 3600, "points": 4}).json()
    assert body["step_s"] == 900
    (group,) = body["objectives"][0]["groups"]
    assert group["budget_left"] == [None, None, None, pytest.approx(0.5)]
    assert group["burn_rates"] == {"3600": [None, None, None, pytest.approx(2)]}
    assert body["objectives"][0]["limits"]["3600"] == pytest.approx(14.4)


def test_histories_wait_for_each_other_and_equal_ones_are_read_once(
    live: TestClient, server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 at once, of 20 kinds; the steps are a day long, so that all of a kind end at one instant."""
    monkeypatch.setattr(watching, "FRESH_S", 1e6)
    server.script = lambda path, query: (200, answer({"resultType": "matrix", "result": []}))
    server.delay_s = 0.05

    def ask(number: int) -> int:
        points = 2 + number % 20
        return live.get("/v1/slos/chat/history", params={"span_s": 86_400 * points, "points": points}).status_code

    with ThreadPoolExecutor(40) as pool:
        statuses = list(pool.map(ask, range(40)))
    assert statuses == [200] * 40
    assert len([query for _, query in server.asked if "cliffwatch_slo:bad:ratio" in query]) == 20


def test_history_of_a_prometheus_that_is_down_is_a_problem(live: TestClient, server: Scripted) -> None:
    server.script = down
    refused = live.get("/v1/slos/chat/history")
    assert refused.status_code == 503
    assert "starting up" in refused.json()["detail"]


def test_names_that_are_not_there(live: TestClient, client: TestClient) -> None:
    for path in ("/v1/slos/other", "/v1/slos/other/history"):
        assert live.get(path).status_code == 404
    assert client.get("/v1/slos").json()["note"].startswith("no SLO is watched")
    assert client.get("/v1/slos/chat").status_code == 404


def notification(status: str = "firing", ends: str = "0001-01-01T00:00:00Z") -> str:
    alert = {"status": status, "labels": LABELS, "startsAt": "2025-06-15T15:06:40Z", "endsAt": ends}
    return json.dumps({"alerts": [alert]})


def events(live: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = live.get("/v1/alerts").json()["events"]
    return found


def test_a_notification_that_comes_twice_is_one_event_and_its_end_is_kept(live: TestClient) -> None:
    for text in (notification(), notification(), notification("resolved", "2025-06-15T15:16:40Z"), notification()):
        assert live.post("/v1/alertmanager", content=text, headers=JSON).json() == {"alerts": 1}
    (event,) = events(live)
    assert event["name"] == "SloBurn1h"
    assert event["ended_unix_s"] - event["started_unix_s"] == 600


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (notification(), {**JSON, "Authorization": "Bearer other"}, 401),
        (notification(), {"Content-Type": "application/json"}, 401),
        (notification(), {**JSON, "Content-Type": "text/plain"}, 422),
        ("{}", JSON, 422),
        ("x" * (2 << 20), JSON, 413),
    ],
)
def test_other_notifications_are_refused(live: TestClient, content: str, headers: dict[str, str], status: int) -> None:
    refused = live.post("/v1/alertmanager", content=content, headers=headers)
    assert refused.status_code == status
    assert TOKEN not in refused.text
    assert events(live) == []
