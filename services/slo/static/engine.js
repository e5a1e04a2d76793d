/* Client and engine side by side over the run's time, and where the time between them went. */

import { byId, node, show } from "./dom.js";
import { table } from "./table.js";
import { attained, clock, count, interval, seconds } from "./words.js";

const signed = (value) => (value === null ? "–" : `${value < 0 ? "-" : ""}${seconds(Math.abs(value))}`);
const mean = (one) => (one === null ? "–" : `${signed(one.mean_s)} (n ${count(one.n)})`);
const number = (text) => node("td", { class: "number" }, text);

export function showEngine({ beside, note }) {
  const box = byId("engine");
  if (!beside) return show(box, node("p", { class: "empty" }, note));
  const lacking = beside.figures.filter((one) => one.lacking).map((one) => `${one.label}: ${one.lacking}`);
  show(box, node("p", { class: "small soft", "data-key": "covered" }, covered(beside)),
    table("Means on both sides, with the number of events behind each", ["Mean of", ">client", ">engine", ">difference"], beside.figures.map(figureRow)),
    ...beside.breakdowns.map((one) => node("p", { "data-key": one.figure }, `${one.label} ${signed(one.client_s)} = ${one.parts.map((part) => `${part.name} ${signed(part.mean_s)}`).join(" + ")}`)),
    beside.shares.length ? table("Shares within the objectives' thresholds", ["Within", ">client", ">engine, by its bucket edges"], beside.shares.map(shareRow)) : null,
    ...[...lacking, ...beside.notes].map((text) => node("p", { class: "small soft" }, text)));
}

function covered({ engine, whole, sent, from_unix_s, to_unix_s }) {
  if (from_unix_s === null) return `${engine}: Prometheus has no samples of it in the run's time: its side is not known.`;
  return `${engine}, ${whole ? "the whole run" : "a part of the run"}, by samples from ${clock(from_unix_s)} to ${clock(to_unix_s)}; all phases, ${count(sent)} prompts sent.`;
}

const figureRow = (one) => node("tr", { "data-key": one.figure }, node("th", { scope: "row" }, one.label),
  number(mean(one.client)), number(mean(one.engine)), number(signed(one.difference_s)));

function shareRow(one) {
  const exact = one.low_edge_s === one.high_edge_s;
  const engine = one.low === null ? "–" : `${exact ? attained(one.low) : interval(one.low, one.high)} (n ${count(one.engine_n)})`;
  return node("tr", {}, node("th", { scope: "row" }, `${one.label} ≤ ${seconds(one.threshold_s)}`),
    number(`${attained(one.client)} (n ${count(one.client_n)})`), number(engine));
}
