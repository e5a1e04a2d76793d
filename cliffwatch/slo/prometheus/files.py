"""Rules as the files that Prometheus and its operator read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from cliffwatch.slo.prometheus.rules import Compiled


class _Dumper(yaml.CSafeDumper):  # five times as fast as the one in Python
    """Expressions of several lines as blocks, everything in the order given, nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the library's signature
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def rule_file(compiled: Compiled) -> str:
    """A rule file for `rule_files` of prometheus.yml."""
    return dump({"groups": list(compiled.groups)}, head=compiled.notes)


def test_file(document: dict[str, Any]) -> str:
    """A file for `promtool test rules`."""
    return "# Written by cliffwatch slo test; run it with: promtool test rules FILE\n" + plain(document)


def prometheus_rule(compiled: Compiled, name: str) -> str:
    """A PrometheusRule object for the Prometheus operator."""
    return plain(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": object_name(name),
            "spec": {"groups": list(compiled.groups)},
        }
    )


def object_name(name: str) -> dict[str, Any]:
    """The metadata of a Kubernetes object of this SLO file."""
    return {
        "name": name.lower().replace("_", "-"),
        "labels": {"app.kubernetes.io/managed-by": "cliffwatch"},
    }


def dump(document: Any, *, head: Iterable[str]) -> str:
    """A YAML file that says where it comes from and what its reader should know."""
    lines = ("Written by cliffwatch slo compile; change the SLO file.", *head)
    return "".join(f"# {line}\n" for line in lines) + plain(document)


def plain(document: Any) -> str:
    """YAML, everything in the order given, nothing by reference."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)
    return text
