"""A Prometheus that has a past: samples written as blocks before it starts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from tests.servers.monitoring import prometheus, tool
from tests.servers.processes import Server

Past = Mapping[str, Sequence[float | None]]


@contextlib.contextmanager
def prometheus_with(
    folder: Path,
    past: Past,
    *,
    start_s: int,
    step_s: int,
    keep_days: int = 15,
    configured: Mapping[str, object] | None = None,
    max_samples: int = 50_000_000,
) -> Iterator[Server]:
    """A server that scrapes nothing and holds these series, a value each `step_s` from `start_s`; None: no sample."""
    with (folder / "past.om").open("w") as stream:
        for series, values in past.items():
            stream.writelines(
                f"{series} {value} {start_s + at * step_s}\n" for at, value in enumerate(values) if value is not None
            )
        stream.write("# EOF\n")
    del past  # millions of samples, in a benchmark
    data = folder / "prometheus-data"
    blocks = ("--quiet", "--max-block-duration=2000h")  # the whole file is read again for each block
    tool("promtool", "tsdb", "create-blocks-from", *blocks, "openmetrics", folder / "past.om", data)
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(configured or {"global": {}}))
    with prometheus(folder, config, keep_days=keep_days, max_samples=max_samples) as server:
        yield server
