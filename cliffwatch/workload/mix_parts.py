"""Mixes in a workload file: several models, tenants and priorities, each entry with its weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Protocol, TypeVar

from pydantic import AfterValidator, Field

from cliffwatch.config import ConfigModel
from cliffwatch.http_header import HEADER_NAME
from cliffwatch.units import Number, WholeNumber
from cliffwatch.workload.parts import Line

TENANT_HEADER = "X-Tenant-Id"
# Headers that the transport writes itself, that frame a message, or that carry secrets: these stay out of files.
_TAKEN_HEADERS = frozenset(
    {"authorization", "connection", "content-encoding", "content-length", "content-type", "cookie", "expect", "host"}
    | {"keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"}
    | {"x-api-key", "x-request-id"}
)


def _header_name(name: str) -> str:
    if not HEADER_NAME.fullmatch(name) or name.lower() in _TAKEN_HEADERS:
        raise ValueError("cannot name the tenant; allowed: a header of its own, such as X-Tenant-Id")
    return name


def _header_value(text: str) -> str:
    if not all(" " <= char <= "~" for char in text) or text != text.strip():
        raise ValueError("cannot stand in a header; allowed: printable ASCII without blanks around it")
    return text


Weight = Annotated[Number, Field(ge=0, le=1e12)]


class Weighted(Protocol):
    """An entry of a mix."""

    @property
    def key(self) -> str | int: ...
    @property
    def weight(self) -> float: ...


class ModelShare(ConfigModel):
    """A model or LoRA adapter by the name that the server knows it by."""

    name: Annotated[Line, Field(min_length=1, max_length=500)]
    weight: Weight = 1.0

    @property
    def key(self) -> str:
        return self.name


class Tenant(ConfigModel):
    """A tenant; `name` goes into the request's `header`."""

    name: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_header_value)]
    weight: Weight = 1.0
    header: Annotated[str, AfterValidator(_header_name)] = TENANT_HEADER

    @property
    def key(self) -> str:
        return self.name


class PriorityShare(ConfigModel):
    """A value of the `priority` field, by which a vLLM with `--scheduling-policy priority` orders its queue."""

    value: Annotated[WholeNumber, Field(ge=-(1 << 31), lt=1 << 31)]
    weight: Weight = 1.0

    @property
    def key(self) -> int:
        return self.value


Entry = TypeVar("Entry", bound=Weighted)


def _a_mix(entries: Sequence[Entry]) -> Sequence[Entry]:
    keys = [entry.key for entry in entries]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise ValueError(f"names {twice} twice; allowed: each once")
    if not sum(entry.weight for entry in entries):
        raise ValueError("have no weight at all; allowed: at least one above zero")
    return entries


Models = Annotated[tuple[ModelShare, ...], Field(min_length=1, max_length=64), AfterValidator(_a_mix)]
Tenants = Annotated[tuple[Tenant, ...], Field(min_length=1, max_length=1000), AfterValidator(_a_mix)]
Priorities = Annotated[tuple[PriorityShare, ...], Field(min_length=1, max_length=64), AfterValidator(_a_mix)]
