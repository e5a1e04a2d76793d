/* The heatmap as a grid that can be walked with the arrow keys; the line under it reads out the cell in hand. */

import { asCells } from "./cells.js";
import { byId, node, show } from "./dom.js";
import * as place from "./place.js";
import { count, plural, statisticWords } from "./words.js";

let shown = null;

/** The charts' name of each unit of the API. */
const UNITS = { s: "s", ratio: "share", requests: "count" };

/**
 * `objectives` are those of the run on this metric: cells above the threshold for their lengths are marked.
 * `jumps` are outlined: each leads from the row before up to its cell.
 */
export function showHeatmap(answer, objectives, jumps) {
  shown = answer;
  const box = byId("heatmap");
  byId("readout").hidden = Boolean(answer.note);
  if (answer.note) return show(box, node("p", { class: "empty" }, answer.note));
  const fresh = node("div");
  cliffwatch.heatmap(fresh, {
    caption: `${statisticWords(answer.statistic)} of ${answer.label}, ${plural(answer.n, "request")} of the ${answer.phase} phase`
      + (answer.insteadOf ? ` (most cells have too few for a ${answer.insteadOf} yet)` : ""),
    corner: `${answer.rows.words.replace(" tokens", "")} ↓ ${answer.columns.words} →`,
    rows: answer.rows.labels, columns: answer.columns.labels, unit: unit(),
    thresholds: answer.unit === "s" && answer.rows.name === "input_tokens" ? strictest(objectives, answer.rows.spans) : null,
    cells: asCells(answer),
    jumps: jumps.map((one) => ({ kind: one.kind, r: answer.rows.keys.indexOf(one.row), c: answer.columns.keys.indexOf(one.column) })),
  });
  asGrid(fresh.querySelector("table"));
  show(box, ...fresh.childNodes);
  keepOneTabStop(box);
  readOut(box.querySelector("td:focus") ?? box.querySelector("td:hover"));
}

const isShare = () => shown.statistic === "attainment";
const unit = () => (isShare() ? "attained" : UNITS[shown.unit] ?? "");
const written = (value) => cliffwatch.byUnit[unit()](value);

/** For each row the lowest threshold of the objectives that hold for all lengths in it; null where there is none. */
function strictest(objectives, spans) {
  const covers = (bucket, low, high) => !bucket || (bucket.min <= low && (bucket.max === null || high - 1 <= bucket.max));
  return spans.map(([low, high]) => {
    const held = objectives.filter((one) => covers(one.input_tokens, low, high)).map((one) => one.threshold_s);
    return held.length ? Math.min(...held) : null;
  });
}

/** Shares of misses at which the colour of an attainment changes: here few is good, and nines matter. */
const MISS_STEPS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5];

function asGrid(table) {
  if (!table) return;
  const open = place.read();
  table.setAttribute("role", "grid");
  table.style.setProperty("--columns", shown.columns.labels.length);
  table.querySelectorAll("tbody tr").forEach((row, r) => row.querySelectorAll("td").forEach((cell, c) => {
    cell.setAttribute("role", "gridcell");
    cell.setAttribute("aria-label", `${sentence(r, c)}${"over" in cell.dataset ? ", over the objective" : ""}`);
    Object.assign(cell.dataset, { r, c });
    cell.setAttribute("aria-selected", String(shown.rows.keys[r] === open.row && shown.columns.keys[c] === open.column));
    const value = shown.values[r][c];
    if (isShare() && value !== null) cell.dataset.heat = MISS_STEPS.filter((step) => 1 - value > step).length;
  }));
}

function sentence(r, c) {
  const value = shown.values[r][c];
  const where = `${shown.rows.words} ${shown.rows.labels[r]}, ${shown.columns.words} ${shown.columns.labels[c]}`;
  const n = shown.counts[r][c];
  if (value === null) return `${where}: ${n ? `too few requests to show, n ${count(n)}` : "no requests"}`;
  const [low, high] = [shown.lows[r][c], shown.highs[r][c]];
  const interval = low === null ? "" : ` (95 % interval ${written(low)} to ${written(high)})`;
  return `${where}: ${statisticWords(shown.statistic)} ${written(value)}${interval}, n ${count(n)}${shown.few[r][c] ? ", few samples" : ""}`;
}

function readOut(cell) {
  byId("readout").textContent = cell?.ariaLabel ?? rest();
}

/** What the line says while no cell is in hand. */
function rest() {
  const known = shown.values.flat().filter((value) => value !== null);
  if (!known.length) return "";
  const [low, high] = [Math.min(...known), Math.max(...known)].map(written);
  const colour = isShare() ? "The colour deepens with the share of misses" : `Colour runs from ${low} to ${high} on a log scale`;
  return `${colour}; † and a dashed edge mark few samples${byId("heatmap").querySelector("[data-over]") ? ", ▲ is over the objective" : ""}. Point at a cell, or walk the grid with the arrow keys; press one to see its requests.`;
}

/** One cell is in the tab order: the one that had the focus last. */
function keepOneTabStop(box, chosen = box.querySelector('td[tabindex="0"]') ?? box.querySelector("td")) {
  for (const cell of box.querySelectorAll("td")) cell.tabIndex = cell === chosen ? 0 : -1;
}

function openCell({ dataset: { r, c } }) {
  if (shown.counts[r][c]) place.go({ ...place.CLOSED, row: shown.rows.keys[r], column: shown.columns.keys[c] });
}

const STEPS = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  Home: [0, -Infinity], End: [0, Infinity], PageUp: [-Infinity, 0], PageDown: [Infinity, 0],
};

/** Listen once; the cells come and go. */
export function watchHeatmap() {
  const box = byId("heatmap");
  const cellOf = (event) => event.target.closest("td[data-r]");
  box.addEventListener("focusin", (event) => { const cell = cellOf(event); if (cell) { keepOneTabStop(box, cell); readOut(cell); } });
  box.addEventListener("focusout", () => readOut(null));
  box.addEventListener("pointerover", (event) => { const cell = cellOf(event); if (cell) readOut(cell); });
  box.addEventListener("pointerleave", () => readOut(box.querySelector("td:focus")));
  box.addEventListener("click", (event) => { const cell = cellOf(event); if (cell) openCell(cell); });
  box.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const cell = cellOf(event);
    if (cell && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      return openCell(cell);
    }
    if (!step || !cell || event.altKey || event.metaKey) return;
    event.preventDefault();
    const clamp = (value, count_) => Math.min(count_ - 1, Math.max(0, value));
    const r = clamp(Number(cell.dataset.r) + step[0], shown.rows.labels.length);
    const c = clamp(Number(cell.dataset.c) + step[1], shown.columns.labels.length);
    box.querySelector(`td[data-r="${r}"][data-c="${c}"]`).focus();
  });
}
