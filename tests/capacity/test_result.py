"""What is kept and shown of a search."""

from __future__ import annotations

import pytest
from rich.console import Console

from cliffwatch.capacity.result import Capacity, headroom, one_fewer, read, record, write
from cliffwatch.capacity.search import Answer, Limits, State, next_step
from cliffwatch.capacity.table import render, sentence
from cliffwatch.errors import RunError
from tests.capacity.made import invalid, probe


def searched(*probes, **facts) -> Capacity:
    answer = facts.pop("answer", None) or next_step(probes, Limits(1.0, None, 10.0, (0.95,))).answer
    names = [record(one, number=place, folder=f"probe-{place:02d}", sent_s=60.0) for place, one in enumerate(probes, 1)]
    return Capacity(
        asked="0", workload="short", slo="quick", target="http://127.0.0.1:1", unit="requests/s",
        objectives=("TTFT ≤ 60 ms",), targets=(0.95,), precision=0.05, confidence=0.95, error=0.05, max_probes=10,
        answer=answer, probes=tuple(names), **facts,
    )  # fmt: skip


def shown(capacity: Capacity) -> str:
    console = Console(width=120, color_system=None)
    with console.capture() as caught:
        console.print(render(capacity))
    return caught.get()


def test_what_is_written_is_read_again(tmp_path):
    capacity = searched(probe(10.0, (1000, 0)), invalid(40.0))
    write(tmp_path, capacity)
    assert read(tmp_path) == capacity


@pytest.mark.parametrize("text", ["", "{}", "[1", '{"format": 1}'])
def test_a_damaged_file_is_said(tmp_path, text):
    (tmp_path / "capacity.json").write_text(text)
    with pytest.raises(RunError, match="cannot be read"):
        read(tmp_path)


def test_shares_carry_their_n_and_interval():
    one = record(probe(10.0, (1000, 10)), number=1, folder="probe-01", sent_s=60.0)
    assert (one.attained[0].n, one.attained[0].share) == (1000, 0.99)
    assert one.attained[0].low < 0.99 < one.attained[0].high
    assert one.goodput_per_s[0] == pytest.approx(9.9)  # 990 in 100 s
    nothing = record(probe(10.0, (0, 0)), number=1, folder="probe-01", sent_s=60.0)
    assert nothing.attained[0].share is None
    assert nothing.goodput_per_s is None


def test_one_replica_fewer_is_scaled_or_measured():
    answer = Answer(state=State.FOUND, capacity=100.0, low=98.0, high=102.0)
    scaled = one_fewer(answer, 4, demand=60.0)
    assert (scaled.capacity, scaled.low, scaled.high, scaled.measured) == (75.0, 73.5, 76.5, False)
    assert scaled.headroom == pytest.approx(1 - 60 / 73.5)
    measured = one_fewer(answer, 4, 60.0, Answer(state=State.FOUND, capacity=70.0, low=69.0, high=71.0))
    assert (measured.capacity, measured.low, measured.measured) == (70.0, 69.0, True)
    assert one_fewer(Answer(state=State.TOO_HIGH, high=1.0), 2, 60.0).capacity is None
    assert headroom(50.0, 60.0) == pytest.approx(-0.2)
    assert headroom(None, 60.0) is None


def test_the_table_shows_probes_curve_and_answer():
    text = shown(searched(probe(20.0, (2000, 0)), probe(80.0, (2000, 900)), fewer=None, demand=10.0, headroom=0.5))
    assert "n 2,000" in text
    assert "requests/s" in text
    assert "not found yet: it lies between 20 and 80" in text
    assert "50.0 % of the capacity's lower end free" in text


@pytest.mark.parametrize(
    ("state", "part"),
    [
        (State.FOUND, "holds up to 42 requests/s (41 to 43, 95% confidence)"),
        (State.WIDE, "wider than the 5 % asked for"),
        (State.AT_LEAST, "at least that"),
        (State.TOO_HIGH, "fails at 43 requests/s, the lowest"),
        (State.GENERATOR, "the load generator, not the server, is the limit: at 120 requests/s"),
        (State.NOTHING, "no probe counts"),
    ],
)
def test_every_ending_has_its_sentence(state, part):
    answer = Answer(state=state, capacity=42.0, low=41.0, high=43.0)
    assert part in sentence(searched(probe(100.0, (1000, 0)), invalid(120.0), answer=answer))


def test_a_search_without_any_evidence_can_be_shown():
    assert "no probe counts" in shown(searched(invalid(40.0), answer=Answer(state=State.NOTHING)))
    assert "no probe has told anything" in shown(
        searched(answer=Answer(state=State.SEARCHING), interrupted="interrupted (SIGINT)")
    )
