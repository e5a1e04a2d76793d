"""Replicas behind one address: which are expected, which answered."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
from pydantic import BaseModel, ConfigDict

from cliffwatch.errors import InputError
from cliffwatch.http_header import HEADER_NAME
from cliffwatch.records.conditions import in_phase
from cliffwatch.records.schema import Phase

MAX_REPLICAS = 1000
MAX_NAME_CHARS = 100
OTHER = "other"  # stands for every name after the first MAX_REPLICAS
_CHANCE = 0.01


class Replicas(BaseModel):
    """What a person said of them. `header` is the response header that names the replica that answered.

    `expected` is how many there are, None where that was not said; `names` are theirs, empty where they were not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    header: str
    expected: int | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, header: str | None, replicas: object = None) -> Replicas | None:
        """From `--replica-header` and `--replicas`, a number or names with commas between. Raises InputError."""
        if header is None:
            if replicas is None:
                return None
            allowed = "with --replica-header NAME, the response header that tells them apart"
            raise InputError("cannot be counted", field="--replicas", value=replicas, allowed=allowed)
        if not HEADER_NAME.fullmatch(header):
            raise InputError("is no header's name", field="--replica-header", value=header, allowed="as X-Served-By")
        if replicas is None:
            return cls(header=header)
        said = [name.strip() for name in str(replicas).split(",")]
        if len(said) == 1 and said[0].isdecimal() and 1 <= int(said[0]) <= MAX_REPLICAS:
            return cls(header=header, expected=int(said[0]))
        good = all(name.isprintable() and 0 < len(name) <= MAX_NAME_CHARS for name in said)
        numeric = len(said) == 1 and said[0].lstrip("+-").replace(".", "", 1).isdecimal()
        if not good or numeric or len(set(said)) < len(said) or len(said) > MAX_REPLICAS:
            allowed = f"a number from 1 to {MAX_REPLICAS}, or so many different names with commas between"
            raise InputError("are not understood", field="--replicas", value=replicas, allowed=allowed)
        return cls(header=header, expected=len(said), names=tuple(said))

    def unseen(self, seen: Mapping[str, int]) -> int | None:
        """How many of the expected answered none of the `seen` (answers by name); None where chance may be why.

        With even routing, each of N replicas misses n answers with probability (1 - 1/N)^n: where N times that is
        1 % or more, nothing is said.
        """
        if self.expected is None:
            return None
        missing = len(self.missing(seen)) if self.names else max(0, self.expected - len(seen))
        by_chance = self.expected * (1 - 1 / self.expected) ** sum(seen.values())
        return None if missing and by_chance >= _CHANCE else missing

    def missing(self, seen: Mapping[str, int]) -> tuple[str, ...]:
        """Expected names that answered none."""
        return tuple(name for name in self.names if name not in seen)


def count_answers(connection: duckdb.DuckDBPyConnection, phase: Phase | None = Phase.MEASURED) -> dict[str, int]:
    """Answers by the replica that gave them, most first; those that named none are left out."""
    found = connection.execute(
        "SELECT replica, count(*) AS n FROM requests"  # noqa: S608  from names of ours
        f" WHERE replica IS NOT NULL AND {in_phase(phase)} GROUP BY 1 ORDER BY n DESC, 1"
    )
    return dict(found.fetchall())
