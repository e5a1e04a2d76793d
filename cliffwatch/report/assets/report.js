/* The report page: hands each plot's data to its renderer. */
"use strict";

(() => {
  const plots = JSON.parse(document.getElementById("data").textContent);
  const draw = (element) => {
    const { kind, ...data } = plots[element.dataset.plot];
    cliffwatch[kind](element, data);
  };
  const elements = document.querySelectorAll("[data-plot]");
  elements.forEach(draw);

  const choice = document.getElementById("heatmap-choice");
  choice.addEventListener("change", () => {
    const map = document.getElementById("heatmap");
    map.dataset.plot = choice.value;
    draw(map);
  });

  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    elements.forEach((element) => { if (plots[element.dataset.plot].kind === "attainment") draw(element); });
  });
  cliffwatch.themeToggle(document.getElementById("theme"));
})();
