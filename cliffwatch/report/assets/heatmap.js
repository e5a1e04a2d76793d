/* Latency over two dimensions of the traffic, as a table. Comes after charts.js. */
"use strict";

cliffwatch.heatmap = (() => {
  const { byUnit, empty, format, node } = cliffwatch;
  const HEAT_STEPS = 8;

  /**
   * A grid as a table. data: {caption, corner, rows: [text], columns: [text], cells[r][c]: {value, n, few},
   *   unit, thresholds?: [number or null a row] (cells above carry ▲), jumps?: [{kind, r, c}] (from the row before to cell r, c)}
   */
  function heatmap(element, data) {
    const written = byUnit[data.unit ?? "s"];
    const known = data.cells.flat().map((cell) => cell.value).filter((value) => value !== null && value > 0);
    if (!known.length) return empty(element, data.empty ?? "No cell has enough requests yet.");
    const low = Math.log(Math.min(...known));
    const span = Math.log(Math.max(...known)) - low || 1;
    const heat = (value) => (value > 0 ? Math.min(HEAT_STEPS - 1, Math.floor(((Math.log(value) - low) / span) * HEAT_STEPS)) : 0);
    const cellOf = (cell, limit) => (cell.value === null
      ? node("td", { class: "none" }, node("b", {}, "–"), node("small", {}, `n ${format.count(cell.n)}`))
      : node("td", { "data-heat": heat(cell.value), "data-few": cell.few, "data-over": limit && cell.value > limit },
        node("b", {}, written(cell.value)), node("small", {}, `n ${format.count(cell.n)}${cell.few ? " †" : ""}`)));
    const head = node("tr", {}, node("th", { scope: "col" }, data.corner), ...data.columns.map((text) => node("th", { scope: "col" }, text)));
    const body = data.rows.map((text, row) => node("tr", {}, node("th", { scope: "row" }, text), ...data.cells[row].map((cell) => cellOf(cell, data.thresholds?.[row]))));
    for (const { kind, r, c } of data.jumps ?? []) body[r]?.cells[c + 1]?.setAttribute("data-jump", kind);
    element.replaceChildren(node("table", { class: "heatmap" },
      node("caption", {}, data.caption), node("thead", {}, head), node("tbody", {}, ...body)));
  }

  return heatmap;
})();
