"""Queries over the view `requests`, put together from names and numbers of this project's own tables, and literals."""

from __future__ import annotations

from typing import Any

import duckdb

from cliffwatch.records.conditions import OK, in_phase
from cliffwatch.records.schema import Phase


def rows(connection: duckdb.DuckDBPyConnection, columns: str, condition: str, tail: str = "") -> list[tuple[Any, ...]]:
    """All rows of a select over `requests`; `tail` groups, orders and limits."""
    query = f"SELECT {columns} FROM requests WHERE {condition} {tail}"  # noqa: S608  see the module
    return connection.execute(query).fetchall()


def row(connection: duckdb.DuckDBPyConnection, columns: str, condition: str) -> tuple[Any, ...]:
    """The one row of aggregates over `requests`."""
    return rows(connection, columns, condition)[0]


def literal(text: str) -> str:
    """A text as SQL: no character but the quote has a meaning in a DuckDB literal."""
    return "'" + text.replace("'", "''") + "'"


def ok_in(phase: Phase | None) -> str:
    """The condition that keeps the successful requests of a phase."""
    return f"{OK} AND {in_phase(phase)}"
