/* How far an objective was attained, on a scale of nines. Comes after charts.js. */
"use strict";

cliffwatch.attainment = (() => {
  const { attained, interval } = cliffwatch.format;
  const NINES_FLOOR = 0.0001; // the right end of the scale, 99.99 % and above
  const TICKS = [0, 0.5, 0.9, 0.95, 0.99, 0.999, 1];

  /** Place on the scale of nines, 0 to 1: each further nine has the same width, since the misses are what matters. */
  const nines = (value) => Math.log10(Math.max(NINES_FLOOR, 1 - value)) / Math.log10(NINES_FLOOR);

  function shape(name, attributes = {}, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  }

  /** One objective's attainment. data: {label, attainment, low, high, target, status} (shares; null when unknown) */
  function attainment(element, data) {
    const width = Math.max(240, element.clientWidth || 480);
    const x = (value) => 10 + nines(value) * (width - 20);
    const svg = shape("svg", { class: "nines", viewBox: `0 0 ${width} 72`, role: "img", "data-state": data.status });
    const known = data.attainment !== null;
    const text = known ? `${attained(data.attainment)}, 95 % interval ${interval(data.low, data.high)}` : "no data";
    svg.append(shape("title", {}, `${data.label}: attained ${text}; target ${Number((data.target * 100).toPrecision(10))} %`));
    svg.append(shape("line", { class: "axis", x1: x(0), x2: x(1), y1: 52, y2: 52 }));
    for (const tick of TICKS.filter((one) => width > 420 || one !== 0.95)) {
      svg.append(shape("line", { class: "tick", x1: x(tick), x2: x(tick), y1: 52, y2: 56 }));
      svg.append(shape("text", { x: x(tick), y: 69, "text-anchor": tick === 0 ? "start" : tick === 1 ? "end" : "middle" }, `${Number((tick * 100).toFixed(3))}`));
    }
    const anchor = (at) => (at < width * 0.15 ? "start" : at > width * 0.85 ? "end" : "middle");
    if (known) {
      svg.append(shape("rect", { class: "interval", x: x(data.low), width: Math.max(3, x(data.high) - x(data.low)), y: 31, height: 14, rx: 3 }));
    }
    svg.append(shape("line", { class: "target", x1: x(data.target), x2: x(data.target), y1: 24, y2: 52 }));
    if (known) {
      const at = x(data.attainment);
      svg.append(shape("circle", { class: "observed", cx: at, cy: 38, r: 6 }));
      svg.append(shape("text", { class: "value", x: at, y: 18, "text-anchor": anchor(at) }, attained(data.attainment)));
    }
    element.replaceChildren(svg);
  }

  return attainment;
})();
