"""Rules as the files that Prometheus and its operator read."""

from __future__ import annotations

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
    head = "".join(
        f"# {line}\n" for line in ("Written by cliffwatch slo compile; change the SLO file.", *compiled.notes)
    )
    return head + _dump({"groups": list(compiled.groups)})


def test_file(document: dict[str, Any]) -> str:
    """A file for `promtool test rules`."""
    return "# Written by cliffwatch slo test; run it with: promtool test rules FILE\n" + _dump(document)


def prometheus_rule(compiled: Compiled, name: str) -> str:
    """A PrometheusRule object for the Prometheus operator."""
    return _dump(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {
                "name": name.lower().replace("_", "-"),
                "labels": {"app.kubernetes.io/managed-by": "cliffwatch"},
            },
            "spec": {"groups": list(compiled.groups)},
        }
    )


def _dump(document: Any) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)
    return text
