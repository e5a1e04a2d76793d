"""What a person asked for, from `cliffwatch run` or from Locust's own command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliffwatch.errors import InputError
from cliffwatch.records.replicas import Replicas
from cliffwatch.units import parse_seconds
from cliffwatch.workload.arrival_parts import SteadyArrivals
from cliffwatch.workload.spec import ENDPOINTS, Workload, load_workload, with_changes
from loadgen.identity import NO_SECRETS, SECRET_NAMES, SECRET_OPTIONS, SecretFiles

DEFAULT_DRAIN = "5s"
DEFAULT_LINGER = "15s"  # three times the interval of the scrape configuration in deploy/
WORKER_LOSS = ("lost", "redistribute")

# name: (metavariable, help); also Locust arguments --cliffwatch-NAME and variables CLIFFWATCH_NAME
OPTIONS: dict[str, tuple[str, str]] = {
    "workload": ("FILE", "Workload file, or the name of a preset such as longtail."),
    "target": ("URL", "The inference server, such as http://127.0.0.1:8000."),
    "out": ("DIR", "Folder of the run; new or empty."),
    "slo": ("FILE", "SLO file, or the name of a preset: the run is judged by it."),
    "model": ("NAME", "Model to ask for; the first of /v1/models unless given."),
    "endpoint": ("NAME", f"{', '.join(ENDPOINTS)}; as the workload says unless given."),
    "tokenizer": ("FILE", "A tokenizer.json, for servers without /tokenize."),
    "ca-file": ("FILE", "Certificates of an authority to trust for TLS."),
    **SECRET_OPTIONS,
    "duration": ("TIME", "Instead of the workload's: how long to send."),
    "rate": ("NUMBER", "Instead of the workload's: requests (or sessions) a second."),
    "metrics": ("[HOST:]PORT", "Where Prometheus may scrape live metrics; on 127.0.0.1 unless HOST is given."),
    "metrics-linger": ("TIME", f"How long metrics stay after the run for a last scrape ({DEFAULT_LINGER})."),
    "on-worker-loss": (
        "lost|redistribute",
        "What a worker that dies had still to send: counted as lost (unless given), or sent by the others.",
    ),
    "replica-header": ("NAME", "Response header that names the replica that answered, such as X-Served-By."),
    "replicas": ("N|NAME,NAME", "How many replicas must answer, or their names; with --replica-header."),
    "drain": ("TIME", f"How long requests in flight may go on when a run is stopped early ({DEFAULT_DRAIN})."),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """One run as asked for.

    Attributes:
        drain_s: how long requests in flight may go on after an early stop.
        metrics: where the master's live metrics are, None for nowhere; workers count for them only then.
        metrics_linger_s: how long they stay after the run, at most.
    """

    workload: str
    target: str
    out: Path
    slo: str | None = None
    model: str | None = None
    endpoint: str | None = None
    tokenizer: Path | None = None
    ca_file: Path | None = None
    secrets: SecretFiles = NO_SECRETS
    insecure: bool = False
    duration: str | None = None
    rate: float | None = None
    drain_s: float = 5.0
    metrics: str | None = None
    metrics_linger_s: float = 15.0
    on_worker_loss: str = WORKER_LOSS[0]
    replicas: Replicas | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Settings:
        """From options by their names (`ca_file` or `ca-file`), absent ones None. Raises InputError."""
        given = {name.replace("-", "_"): value for name, value in options.items() if value not in {None, ""}}
        for needed in ("workload", "target", "out"):
            if needed not in given:
                raise InputError("is missing", field=needed, allowed=OPTIONS[needed][1])
        for name in ("out", "tokenizer", "ca_file"):
            if name in given:
                given[name] = Path(given[name])
        if "rate" in given:
            given["rate"] = _number(given["rate"])
        if (choice := given.get("on_worker_loss", WORKER_LOSS[0])) not in WORKER_LOSS:
            raise InputError("is unknown", field="--on-worker-loss", value=choice, allowed=" or ".join(WORKER_LOSS))
        drain_s = _seconds("--drain", given.pop("drain", DEFAULT_DRAIN))
        linger_s = linger_of(given.pop("metrics_linger", None))
        secrets = SecretFiles.of({name: given.pop(name, None) for name in SECRET_NAMES})
        replicas = Replicas.of(given.pop("replica_header", None), given.pop("replicas", None))
        return cls(**given, secrets=secrets, drain_s=drain_s, metrics_linger_s=linger_s, replicas=replicas)

    def read_workload(self) -> Workload:
        """The workload file with this run's changes. Raises InputError."""
        workload = load_workload(self.workload)
        changes: dict[str, Any] = {
            name: value
            for name, value in (("model", self.model), ("endpoint", self.endpoint), ("duration", self.duration))
            if value is not None
        }
        if self.duration is not None and "requests" in workload.model_fields_set:
            changes["requests"] = None
        if self.rate is not None:
            if not isinstance(workload.arrivals, SteadyArrivals):
                allowed = "a workload whose arrivals have one rate: constant, poisson, gamma"
                message = f"has no meaning for {workload.arrivals.kind} arrivals"
                raise InputError(message, field="--rate", value=self.rate, allowed=allowed)
            changes["arrivals"] = {**workload.arrivals.model_dump(), "rate": self.rate}
        return with_changes(workload, **changes) if changes else workload


def linger_of(text: str | None) -> float:
    """Seconds of `--metrics-linger`, None or empty where it was not given. Raises InputError."""
    return _seconds("--metrics-linger", text or DEFAULT_LINGER)


def _seconds(name: str, text: object) -> float:
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise InputError(str(error), field=name, value=text) from error
    if not 0 <= seconds <= 3600:
        raise InputError("is out of range", field=name, value=text, allowed="0s to 1h")
    return seconds


def _number(text: object) -> float:
    try:
        return float(str(text))
    except ValueError as error:
        raise InputError("is not a number", field="--rate", value=text, allowed="requests a second") from error
