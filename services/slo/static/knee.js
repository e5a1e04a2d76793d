/* Where the metric begins to grow in another way along batch, concurrency, rate or length; against another run, too. */

import { byId, node, show } from "./dom.js";
import * as place from "./place.js";

let answered = null;
let drawn = "";

/** `answer` is {knees, against, moves}: the last two null while no other run is chosen; null where none is looked for. */
export function showKnee(answer, runs, id) {
  answered = answer;
  const { against } = place.read();
  show(byId("knee-against"), node("option", { value: "", "data-key": "" }, "no other run"),
    ...runs.filter((run) => run.id !== id).map((run) => node("option", { value: run.id, "data-key": run.id }, run.id)));
  byId("knee-against").value = against;
  byId("knee-axis").value = place.read().knee_axis;
  if (!answer) return refuseKnee("Looked for once the run is over.");
  const { curves, by_words: by } = answer.knees;
  const chosen = byId("knee-of");
  chosen.hidden = chosen.previousElementSibling.hidden = curves.length < 2;
  show(byId("knee-by"), by);
  show(chosen, curves.map((one) => node("option", { value: one.of, "data-key": one.of }, one.of)));
  if (!curves.length) return refuseKnee("No request has the metric.");
  chosen.value = curves.some((one) => one.of === place.read().knee_of) ? place.read().knee_of : answer.knees.surest ?? curves[0].of;
  draw(chosen.value);
}

export function refuseKnee(text) {
  drawn = "";
  byId("knee-words").textContent = "";
  cliffwatch.empty(byId("knee"), text);
}

function draw(of) {
  const { knees, against, moves } = answered;
  const shown = [[knees.run, curveOf(knees, of)], ...(against ? [[against.run, curveOf(against, of)]] : [])].filter(([, one]) => one);
  const move = moves?.moves.find((one) => one.of === of);
  show(byId("knee-words"), ...shown.map(([name, one]) => node("span", {}, `${shown.length > 1 ? `${name}: ` : ""}${knees.axis_words} ${one.says}. `)),
    against ? node("b", {}, move ? `Moved by ${move.says} from ${against.run}.` : `No knee in both runs, so no move is told.`) : null);
  const xs = [...new Set(shown.flatMap(([, one]) => one.x))].sort((one, other) => one - other);
  const data = {
    label: `${knees.label} along ${knees.axis_words}`, x: xs, xLabels: xs.map((x) => String(Number(x.toPrecision(3)))), xLabel: knees.axis_words,
    yLabel: knees.label, unit: knees.unit === "s" ? "s" : "", columns: shown.map(([name]) => name),
    cells: xs.map((x) => shown.map(([, one]) => cellAt(one, one.x.indexOf(x)))),
    pieces: shown.map(([, one], c) => ({ c, corners: one.corners })),
    breaks: shown.flatMap(([, one], c) => one.breaks.map(({ at, low, high }) => ({ c, at, low, high, label: String(Number(at.toPrecision(3))) }))),
    empty: "Too few points for a curve.",
  };
  if (JSON.stringify(data) !== drawn) cliffwatch.curves(byId("knee"), data);
  drawn = JSON.stringify(data);
}

const curveOf = (knees, of) => knees.curves.find((one) => one.of === of);
const cellAt = (one, at) => (at < 0 ? { value: null, n: 0 } : { value: one.values[at], low: one.lows[at], high: one.highs[at], n: one.counts[at] });

/** Listen once; what is chosen stands in the address. */
export function watchKnee() {
  for (const [id, key] of [["knee-axis", "knee_axis"], ["knee-of", "knee_of"], ["knee-against", "against"]]) {
    byId(id).addEventListener("change", (event) => place.go({ [key]: event.target.value, ...(key === "knee_axis" && { knee_of: "" }) }));
  }
}
