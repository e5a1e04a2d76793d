"""Plain Locust's side of the link: its options, and the environment that makes its runners with our sockets."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import locust.main
from locust.env import Environment
from locust.exception import RPCError

from cliffwatch.errors import CliffwatchError, InputError
from loadgen.link import INSECURE_HELP, check_bind, use_key
from loadgen.link_key import FILE_VARIABLE, INSECURE_VARIABLE, KEY_HELP, KEY_VARIABLE, LinkKey, read_key

_EVERY_INTERFACE = "*"  # where Locust listens unless told
logger = logging.getLogger("cliffwatch.link")


class LinkedEnvironment(Environment):
    """Plain Locust's environment: the first thing that knows the command line, and makes the runners."""

    def create_master_runner(self, master_bind_host: str = _EVERY_INTERFACE, master_bind_port: int = 5557) -> Any:
        with _leaving_on_error():
            key, insecure = self._prepare_link()
            if master_bind_host == _EVERY_INTERFACE and key is None and not insecure:
                master_bind_host = "127.0.0.1"
                logger.warning("listening on 127.0.0.1 only: to let in other machines, give %s", KEY_VARIABLE)
            check_bind(master_bind_host, key, insecure=insecure, option="--master-bind-host")
            try:
                return super().create_master_runner(master_bind_host, master_bind_port)
            except RPCError as error:
                address = f"{master_bind_host}:{master_bind_port}"
                raise InputError(str(error), field="--master-bind-host", value=address) from error

    def create_worker_runner(self, master_host: str, master_port: int) -> Any:
        with _leaving_on_error():
            self._prepare_link()
            return super().create_worker_runner(master_host, master_port)

    def _prepare_link(self) -> tuple[LinkKey | None, bool]:
        options = vars(self.parsed_options)
        file = options["link_key_file"]
        key = read_key(Path(file) if file else None)
        use_key(key)
        return key, bool(options["insecure_link"])


@contextmanager
def _leaving_on_error() -> Iterator[None]:
    """Locust shows any exception as a traceback; ours are one line and an exit code."""
    try:
        yield
    except CliffwatchError as error:
        logger.error("%s", error)  # noqa: TRY400  the line says it all
        sys.exit(int(error.exit_code))


def add_arguments(parser: Any) -> None:
    """The link's options on plain Locust's command line, and the environment that reads them."""
    parser.add_argument(
        "--cliffwatch-link-key-file", dest="link_key_file", metavar="FILE", help=KEY_HELP, default="",
        env_var=FILE_VARIABLE, include_in_web_ui=False,
    )  # fmt: skip
    parser.add_argument(
        "--cliffwatch-insecure-link", dest="insecure_link", action="store_true", default=False, help=INSECURE_HELP,
        env_var=INSECURE_VARIABLE, include_in_web_ui=False,
    )  # fmt: skip
    locust.main.Environment = LinkedEnvironment  # type: ignore[attr-defined]
