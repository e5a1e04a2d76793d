/* The requests of the cell that is open, slowest first, a page at a time. */

import { badge, byId, node, show } from "./dom.js";
import * as place from "./place.js";
import { table } from "./table.js";
import { count, plural, seconds } from "./words.js";

export const PAGE = 20;
let opened = ""; // the cell that was shown last: a fresh one takes the focus

/** `grid` is the heatmap that it is a cell of, for its words. */
export function showCell(answer, grid) {
  const box = byId("cell");
  box.hidden = answer === null;
  const key = answer === null ? "" : JSON.stringify([place.read().row, place.read().column]);
  if (answer !== null) {
    show(box, head(title(answer, grid)), answer.n ? requests(answer) : node("p", { class: "empty" }, "No request is in this cell any more."), turn(answer));
    if (key !== opened) byId("cell-title").focus();
  }
  opened = key;
}

function title(answer, grid) {
  const { row, column } = place.read();
  const side = (axis, key) => `${axis.words} ${axis.labels[axis.keys.indexOf(key)] ?? key}`;
  return grid ? `${side(grid.rows, row)}, ${side(grid.columns, column)}` : `${row}, ${column}`;
}

const head = (text) => node("div", { class: "bar" }, node("h3", { id: "cell-title", tabindex: "-1" }, `Requests of ${text}`),
  node("button", { class: "button", type: "button", "data-close": "" }, "Close"));

function requests(answer) {
  const unit = (value) => (value === null ? "–" : cliffwatch.byUnit[answer.unit === "s" ? "s" : ""](value));
  const time = (value) => (value === null ? "–" : seconds(value));
  const rows = answer.requests.map((one) => node("tr", { "data-key": String(one.request_id) },
    node("th", { scope: "row" }, String(one.request_id)), node("td", { class: "number" }, `${one.time_s.toFixed(1)} s`),
    node("td", { class: "number" }, unit(one.metric)), ...["ttft_s", "itl_s", "e2e_s"].map((name) => node("td", { class: "number" }, time(one[name]))),
    node("td", { class: "number" }, count(one.input_tokens)), node("td", { class: "number" }, one.output_tokens === null ? "–" : count(one.output_tokens)),
    node("td", {}, badge(one.outcome === "ok" ? "ok" : "failed", one.outcome), one.error ? ` ${one.error}` : ""), node("td", {}, one.replica ?? "–")));
  const caption = `${plural(answer.n, "request")}, ${count(answer.counted)} of them in the figure; slowest ${answer.label} first`;
  return table(caption, ["Request", ">Due at", `>${answer.label}`, ">TTFT, service", ">ITL", ">E2E, service", ">Input", ">Output", "Outcome", "Replica"], rows);
}

function turn(answer) {
  if (answer.n <= PAGE) return null;
  const last = Math.min(answer.n, answer.offset + PAGE);
  const button = (text, offset, off) => node("button", { class: "button", type: "button", "data-offset": String(offset), disabled: off }, text);
  return node("p", { class: "choices" }, button("Slower", Math.max(0, answer.offset - PAGE), answer.offset === 0),
    button("Faster", answer.offset + PAGE, last >= answer.n), node("span", { class: "small soft" }, ` ${count(answer.offset + 1)} to ${count(last)} of ${count(answer.n)}`));
}

/** Listen once; Escape and Close lead back to the cell. */
export function watchCell() {
  const box = byId("cell");
  const close = () => {
    place.go(place.CLOSED);
    byId("heatmap").querySelector('td[aria-selected="true"]')?.focus();
  };
  box.addEventListener("click", ({ target }) => {
    if (target.closest("[data-close]")) close();
    const { offset } = target.closest("[data-offset]")?.dataset ?? {};
    if (offset !== undefined) place.go({ offset: offset === "0" ? "" : offset });
  });
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
}
