"""Machines of their own, as far as the network goes: a hub and hosts around it, each a network namespace.

Everything is inside the namespaces: nothing of this machine's own network is touched.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HUB_ADDRESS = "192.0.2.1"  # of TEST-NET-1, which belongs to nobody


def ip(*words: object) -> None:
    """One `ip` command. Raises CalledProcessError."""
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True, timeout=30)


def why_not() -> str | None:
    """Why there can be no namespaces here; None where there can."""
    name = f"cwtry-{os.getpid()}"
    try:
        ip("netns", "add", name)
        try:
            ip("-n", name, "link", "add", "try0", "type", "veth", "peer", "name", "try1")
            ip("-n", name, "link", "add", "try2", "type", "bridge")
        finally:
            ip("netns", "del", name)
    except FileNotFoundError:
        return "no `ip` here (package iproute2)"
    except subprocess.CalledProcessError as error:
        return f"network namespaces need root and veth: {error.stderr.strip()}"
    return None


@dataclass
class Network:
    """`hub` is the namespace of the master and the engine, at `HUB_ADDRESS`."""

    prefix: str
    hosts: list[str] = field(default_factory=list)

    @property
    def hub(self) -> str:
        return f"{self.prefix}-hub"

    def add_host(self) -> str:
        """One more machine, on a cable to the hub's bridge."""
        number = len(self.hosts) + 1
        host, cable = f"{self.prefix}-{number}", f"cable{number}"
        ip("netns", "add", host)
        self.hosts.append(host)
        ip("-n", self.hub, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", host)
        ip("-n", self.hub, "link", "set", cable, "master", "br0", "up")
        ip("-n", host, "address", "add", f"192.0.2.{number + 1}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            ip("-n", host, "link", "set", device, "up")
        return host

    def cut(self, host: str) -> None:
        self._set(host, "down")

    def mend(self, host: str) -> None:
        self._set(host, "up")

    def start(self, host: str, command: list[object], log: Path, **environment: str) -> subprocess.Popen[bytes]:
        """Run a command on one of the machines, what it says going to `log`."""
        with log.open("wb") as output:
            return subprocess.Popen(
                ["ip", "netns", "exec", host, *map(str, command)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=os.environ | environment,
            )  # fmt: skip

    def _set(self, host: str, state: str) -> None:
        ip("-n", self.hub, "link", "set", f"cable{self.hosts.index(host) + 1}", state)


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A hub without hosts. At the end everything is taken down; its processes must have ended."""
    made = Network(f"cw-{os.getpid()}")
    ip("netns", "add", made.hub)
    try:
        ip("-n", made.hub, "link", "add", "br0", "type", "bridge")
        ip("-n", made.hub, "address", "add", f"{HUB_ADDRESS}/24", "dev", "br0")
        for device in ("br0", "lo"):
            ip("-n", made.hub, "link", "set", device, "up")
        yield made
    finally:
        for name in [*made.hosts, made.hub]:
            ip("netns", "del", name)
