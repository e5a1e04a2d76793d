"""ServeGen's clients: their rates, gaps and lengths as drawn, against the figures they are drawn from."""

from __future__ import annotations

import json
import math
import tarfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from cliffwatch.errors import InputError
from cliffwatch.workload.preview import preview
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload, load_workload
from tests.workload.statistics import Z, binomial_z


def write(folder: Path, number: int, windows: list[str], lengths: dict[str, dict[str, str]] | None = None) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"chunk-{number}-trace.csv").write_text("\n".join(windows))
    if lengths is not None:
        (folder / f"chunk-{number}-dataset.json").write_text(json.dumps(lengths))


def workload(tmp_path: Path, file: str | Path, **fields: object) -> Workload:
    (tmp_path / "w.yaml").write_text(json.dumps({"arrivals": {"kind": "trace", "file": str(file), **fields}}))
    return load_workload(str(tmp_path / "w.yaml"))


def times_s(load: Workload) -> np.ndarray:
    return np.array([plan.intended_ns for plan in schedule(load)]) / 1e9


LENGTHS = {"0": {"input_tokens": "{10: 0.25, 20: 0.75}", "output_tokens": "{5: 1.0}"}}


@pytest.mark.parametrize(
    ("family", "shape", "cv"),
    [
        ("Gamma", 0.5, math.sqrt(2)),
        ("Gamma", 4.0, 0.5),
        ("Weibull", 1.0, 1.0),
        # Weibull of 1/2: mean 2, mean square 24
        ("Weibull", 0.5, math.sqrt(5)),
    ],
)
def test_rates_and_gaps_are_those_of_the_windows(tmp_path: Path, family: str, shape: float, cv: float) -> None:
    """Counts deviate by cv sqrt(n); within Z of these. CV within 11 %: the last one of 18,000 gaps deviates 2.7 %."""
    write(tmp_path / "c", 0, [f"{start},{rate},1,{family},{shape},9" for start, rate in ((0, 30), (600, 15))], LENGTHS)
    times = times_s(workload(tmp_path, "c"))
    for start, rate in ((0, 30), (600, 15)):
        mine = times[(times >= start) & (times < start + 600)]
        assert abs(len(mine) - 600 * rate) < Z * cv * math.sqrt(600 * rate)
    gaps = np.diff(times[times < 600])
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.11)
    assert times.max() < 1200


@pytest.mark.parametrize(("family", "shape"), [("Gamma", 0.1), ("Weibull", 0.4)])
def test_a_window_has_its_rate_from_its_first_moment(tmp_path: Path, family: str, shape: float) -> None:
    for number in range(3000):
        write(tmp_path / "c", number, [f"0,0.05,1,{family},{shape},9", "2,0,0,,0,0"], LENGTHS if number == 0 else None)
    times = times_s(workload(tmp_path, "c", end=2))
    one = math.sqrt(0.1 * 20)  # of one client's count, generously: it comes in lumps
    assert abs(len(times) - 300) < Z * one * math.sqrt(3000)


def test_a_slice_is_the_same_as_in_the_whole(tmp_path: Path) -> None:
    write(tmp_path / "c", 0, [f"{start},5,1,Gamma,0.5,9" for start in range(0, 3000, 600)], LENGTHS)
    whole = times_s(workload(tmp_path, "c"))
    part = times_s(workload(tmp_path, "c", start=700, end=1900))
    assert part == pytest.approx(whole[(whole >= 700) & (whole < 1900)] - 700)


def test_clients_are_independent_merged_in_order_and_scaled(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / "c", number, ["0,10,1,Gamma,1,0.1"], LENGTHS)
    times = times_s(workload(tmp_path, "c"))
    assert (np.diff(times) >= 0).all()
    assert len(set(times.tolist())) == len(times)
    doubled = times_s(workload(tmp_path, "c", rate_scale=2))
    assert abs(len(times) - 24_000) < Z * math.sqrt(24_000)
    assert abs(len(doubled) - 48_000) < Z * math.sqrt(48_000)


def test_lengths_are_the_clients_own_or_the_others(tmp_path: Path) -> None:
    write(tmp_path / "c", 0, ["0,10,1,Gamma,1,0.1"], LENGTHS)
    write(tmp_path / "c", 1, ["0,10,1,Gamma,1,0.1"], {"0": {"input_tokens": "{}", "output_tokens": "{}"}})
    load = workload(tmp_path, "c")
    plans = list(schedule(load))
    assert {plan.output_tokens for plan in plans} == {5}
    assert abs(binomial_z(sum(plan.input_tokens == 20 for plan in plans), len(plans), 0.75)) < Z
    assert [repair.what for repair in preview(load).repairs] == [
        "a client's window has no lengths: drawn from the other clients' by their rates"
    ]


def test_rates_alone_need_lengths_of_the_workload(tmp_path: Path) -> None:
    write(tmp_path / "c", 0, ["0,10,1,Gamma,1,0.1"])
    with pytest.raises(InputError, match="input_tokens: are not in the trace; allowed: lengths of another kind"):
        list(schedule(workload(tmp_path, "c")))
    text = json.loads((tmp_path / "w.yaml").read_text())
    own = {"input_tokens": {"kind": "fixed", "value": 9}, "output_tokens": {"kind": "fixed", "value": 3}}
    (tmp_path / "w.yaml").write_text(json.dumps({**text, **own}))
    assert {plan.input_tokens for plan in islice(schedule(load_workload(str(tmp_path / "w.yaml"))), 5)} == {9}


@pytest.mark.parametrize(
    ("window", "says"),
    [
        ("0,x,1,Gamma,1,1", "chunk-0-trace.csv: line 1: is no window"),
        ("0,1,1,Gamma", "line 1: is no window"),
        ("0,-1,1,Gamma,1,1", "line 1: is no window"),
        ("0,nan,1,Gamma,1,1", "line 1: is no window"),
        ("0,1,1,Pareto,1,1", "line 1: is no window"),
        ("0,1,1,Weibull,0.001,1", "line 1: is no window"),
    ],
)
def test_windows_that_mean_nothing_are_refused(tmp_path: Path, window: str, says: str) -> None:
    write(tmp_path / "c", 0, [window], LENGTHS)
    with pytest.raises(InputError) as caught:
        workload(tmp_path, "c")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "entry",
    ["{10: __import__('os')}", "[1]", "{'a': 1}", "{10: -1.0}", "{10: 0.0}", "{10: ", "(" * 5000, "{10: 1e999}"],
)
def test_lengths_that_mean_nothing_are_refused(tmp_path: Path, entry: str) -> None:
    write(tmp_path / "c", 0, ["0,1,1,Gamma,1,1"], {"0": {"input_tokens": entry, "output_tokens": "{5: 1.0}"}})
    with pytest.raises(InputError, match=r"chunk-0-dataset\.json: holds no lengths"):
        workload(tmp_path, "c")


def test_a_folder_without_clients_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: holds no chunk-N-trace\.csv"):
        workload(tmp_path, "empty")
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8b garbage")
    with pytest.raises(InputError, match=r"x\.tar\.gz: cannot be read"):
        workload(tmp_path, "x.tar.gz")


def test_an_archive_is_read_as_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "c", 7, ["0,5,1,Gamma,1,0.1"], LENGTHS)
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "c", arcname="some/where")
    assert list(schedule(workload(tmp_path, "c.tar.gz"))) == list(schedule(workload(tmp_path, "c")))


def test_a_published_hour_has_its_rate(shared_dir: Path, tmp_path: Path) -> None:
    """The sum of all clients' rates in the slice, read apart. Their counts scatter more than Poisson's."""
    file = shared_dir / "traces" / "servegen" / "reason-deepseek-r1.tar.gz"
    expected = 0.0
    with tarfile.open(file) as archive:
        for member in archive:
            if member.name.endswith("trace.csv"):
                content = archive.extractfile(member)
                assert content is not None
                rows = (line.split(",") for line in content.read().decode().splitlines())
                expected += sum(600 * float(row[1]) for row in rows if 43_200 <= float(row[0]) < 46_800)
    load = workload(tmp_path, file, start="12h", end="13h")
    plans = list(schedule(load))
    assert len(plans) == pytest.approx(expected, rel=0.05)
    assert 250 < np.median([plan.input_tokens for plan in plans][:20_000]) < 310  # published: 270 over the day
