/* Cached against uncached: the metric over input length at one batch size, a line for each state of the prefix cache. */

import { asCells } from "./cells.js";
import { byId, node, show } from "./dom.js";
import { statisticWords } from "./words.js";

let answered = null;
let drawn = "";

/** Shown where the run has requests of two states, drawn where there are enough of both. */
export function showCached(answer) {
  answered = answer;
  byId("cached-card").hidden = !answer?.heatmaps.some((one) => one.columns.keys.length > 1);
  if (byId("cached-card").hidden) return;
  const both = answer.heatmaps.map((one, at) => ({ one, at })).filter(({ at }) => answer.says[at] !== null);
  const chosen = byId("cached-at");
  chosen.hidden = chosen.previousElementSibling.hidden = both.length < 2;
  show(chosen, both.map(({ one, at }) => node("option", { value: String(at), "data-key": one.facet }, one.facet)));
  if (!both.length) {
    drawn = "";
    byId("cached-words").textContent = "";
    return cliffwatch.empty(byId("cached"), "No length has enough requests of two cache states.");
  }
  if (!both.some(({ at }) => String(at) === chosen.value)) chosen.value = String(both[0].at);
  draw();
}

function draw() {
  const at = Number(byId("cached-at").value);
  const one = answered.heatmaps[at];
  byId("cached-words").textContent = `${statisticWords(one.statistic)} of ${one.label}, ${answered.says[at]}.`;
  const data = {
    label: `${one.label} over input length, cached and not`, x: one.rows.middles, xLabels: one.rows.labels, xLabel: one.rows.words,
    yLabel: one.label, unit: "s", columns: one.columns.labels, cells: asCells(one),
  };
  if (JSON.stringify(data) !== drawn) cliffwatch.curves(byId("cached"), data);
  drawn = JSON.stringify(data);
}

export const watchCached = () => byId("cached-at").addEventListener("change", draw);
