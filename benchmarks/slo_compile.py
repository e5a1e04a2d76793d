"""SLO files to Prometheus rules: CPU time of 200 files with 3 objectives each, from their text to that of the rules.

    python -m benchmarks.slo_compile [FILES]

Every file has a latency, an availability and a time-slice objective, and groups by instance. Saves what it saw in
benchmarks/results/slo_compile.json. Goal for 200 files: under 2 s.
"""

from __future__ import annotations

import sys
import time

from benchmarks._saved import conclude
from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import parse_slo

GOAL_S = 2.0
TEXT = """
name: team-{number}
objectives:
  - {{sli: ttft, threshold: 2.5s, target: 95%}}
  - {{sli: availability, target: 99.9%}}
  - {{sli: e2e, quantile: p95, threshold: 30s, slices: 5m, target: 99%}}
watch: {{engine: vllm, match: {{job: team-{number}}}, group_by: [instance]}}
"""


def measure(files: int) -> dict[str, float]:
    """Compile so many files: CPU seconds, rules, MB of text."""
    compile_rules(parse_slo(TEXT.format(number="x"), source="x"))  # the engine's catalog is read once a process
    started, rules, size = time.process_time(), 0, 0
    for number in range(files):
        compiled = compile_rules(parse_slo(TEXT.format(number=number), source=f"{number}.yaml"))
        rules += sum(len(group["rules"]) for group in compiled.groups)
        size += len(rule_file(compiled))
    took = time.process_time() - started
    made = {"rules": rules, "mb": round(size / 1e6, 1)}
    return {"files": files, "objectives": 3 * files, **made, "cpu_s": round(took, 2)}


def main() -> None:
    """Measure, print, save."""
    measured = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    passed = measured["cpu_s"] < GOAL_S
    conclude("slo_compile", {**measured, "goal_cpu_s": GOAL_S, "passed": passed}, passed=passed)


if __name__ == "__main__":
    main()
