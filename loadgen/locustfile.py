"""The plain Locust entry: `locust -f loadgen/locustfile.py`, alone, as --master or as --worker.

What to send comes from --cliffwatch-workload, --cliffwatch-target, --cliffwatch-out and their like, or from variables
CLIFFWATCH_WORKLOAD and so on. The number of users is of no account: arrivals follow the workload's schedule.
"""

from __future__ import annotations

from typing import Any

from locust import events

from loadgen import plain_link
from loadgen.plugin import IdleUser, add_arguments, attach

__all__ = ["IdleUser"]


def _add_arguments(parser: Any, **_: object) -> None:
    add_arguments(parser)
    plain_link.add_arguments(parser)


def _attach(environment: Any, **_: object) -> None:
    attach(environment)


events.init_command_line_parser.add_listener(_add_arguments)  # type: ignore[no-untyped-call]
events.init.add_listener(_attach)  # type: ignore[no-untyped-call]
