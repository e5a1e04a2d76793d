/* How far to trust the run: every check of the load generator, and its own error where that was measured. */

import { badge, byId, node, show } from "./dom.js";
import { table } from "./table.js";
import { bias, checked, count } from "./words.js";

const HEADS = ["Check", ">value", ">DEGRADED from", ">INVALID from", ">n", "state"];

export function showTrust(run) {
  const box = byId("trust");
  const own = run.calibration?.levels.at(-1);
  const error = node("p", { class: "small soft", "data-key": "bias" }, own
    ? `The client's own error, measured before the run at ${count(own.streams)} streams: TTFT ${bias(own.ttft)}; ITL ${bias(own.itl)}.`
    : "The client's own error was not measured: cliffwatch run --calibrate.");
  if (!run.checks.length) return show(box, node("p", { class: "empty" }, "Checked when the run has ended."), error);
  show(box, table("Checks of the load generator itself, the worst worker or host of each", HEADS, run.checks.map(checkRow)), error);
}

function checkRow(one) {
  const sign = one.below ? "<" : "≥";
  const limit = (value) => (value === null ? "–" : `${sign} ${checked(value, one.unit)}`);
  return node("tr", { "data-key": one.check }, node("th", { scope: "row" }, one.check),
    ...[checked(one.value, one.unit), limit(one.degraded), limit(one.invalid), count(one.n)].map((text) => node("td", { class: "number" }, text)),
    node("td", { class: "words" }, one.state === null ? `not checked: ${one.message}` : badge(one.state)));
}
