"""Everything that `slo compile` writes, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cliffwatch.slo.prometheus.around import alertmanager_config, scrape_config, service_monitor
from cliffwatch.slo.prometheus.files import prometheus_rule, rule_file
from cliffwatch.slo.prometheus.rules import Compiled
from cliffwatch.slo.watch import Watch


class Form(NamedTuple):
    """How an SLO's rules, or what stands around them, are written; `of_rules`: they are the rules themselves."""

    text: Callable[[str, Watch, Compiled], str]
    of_rules: bool = False


FORMS: dict[str, Form] = {
    "prometheus": Form(lambda _name, _watch, compiled: rule_file(compiled), of_rules=True),
    "operator": Form(lambda name, _watch, compiled: prometheus_rule(compiled, name), of_rules=True),
    "scrape": Form(lambda name, watch, _compiled: scrape_config(name, watch)),
    "service-monitor": Form(lambda name, watch, _compiled: service_monitor(name, watch)),
    "alertmanager": Form(lambda name, watch, _compiled: alertmanager_config(name, watch)),
}
