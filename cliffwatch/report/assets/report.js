/* The report page: hands each plot's data to its renderer. */
"use strict";

(() => {
  const plots = JSON.parse(document.getElementById("data").textContent);
  const draw = (element) => {
    const { kind, ...data } = plots[element.dataset.plot];
    cliffwatch[kind](element, data);
  };
  const map = document.getElementById("heatmap");
  const { node, format } = cliffwatch;

  /** The slowest requests of a cell, below the heatmap. */
  function open({ cellIndex, parentElement }) {
    const { slowest, rows, columns, label, cells } = plots[map.dataset.plot];
    const [r, c] = [parentElement.sectionRowIndex, cellIndex - 1];
    if (!slowest[r]?.[c]?.length) return;
    const number = (text) => node("td", { class: "number" }, text);
    const body = slowest[r][c].map(([id, due_s, value_s, input, output, replica]) => node("tr", {}, node("th", { scope: "row" }, String(id)),
      number(`${due_s.toFixed(1)} s`), number(format.seconds(value_s)), number(format.count(input)), number(format.count(output)), node("td", {}, replica ?? "–")));
    const heads = ["Request", "due at", label.replace(/ P\d+$/, ""), "input", "output", "replica"].map((text, at) => node("th", { scope: "col", class: at && at < 5 ? "number" : null }, text));
    document.getElementById("heatmap-requests").replaceChildren(node("table", { class: "table" },
      node("caption", {}, `The slowest ${slowest[r][c].length} of ${format.count(cells[r][c].n)} requests of ${rows[r]}, ${columns[c]}`),
      node("thead", {}, node("tr", {}, ...heads)), node("tbody", {}, ...body)));
  }

  /** Cells that have requests may be pressed, with a key too. */
  function makeOpenable() {
    for (const cell of map.querySelectorAll("tbody td")) {
      if (plots[map.dataset.plot].slowest[cell.parentElement.sectionRowIndex]?.[cell.cellIndex - 1]?.length) cell.tabIndex = 0;
    }
  }
  map.addEventListener("click", ({ target }) => { const cell = target.closest("tbody td"); if (cell) open(cell); });
  map.addEventListener("keydown", (event) => {
    const cell = event.target.closest("tbody td");
    if (!cell || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    open(cell);
  });

  const elements = document.querySelectorAll("[data-plot]");
  elements.forEach(draw);
  makeOpenable();

  const choice = document.getElementById("heatmap-choice");
  choice.addEventListener("change", () => {
    map.dataset.plot = choice.value;
    draw(map);
    document.getElementById("heatmap-says").textContent = plots[choice.value].says;
    makeOpenable();
  });

  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    elements.forEach((element) => { if (plots[element.dataset.plot].kind === "attainment") draw(element); });
  });
  cliffwatch.themeToggle(document.getElementById("theme"));
})();
