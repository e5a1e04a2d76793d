/* Charts of cliffwatch's pages: a small layer over uPlot. What uPlot does not draw is in heatmap.js and attainment.js, what
   needs more of it in curves.js. One global, `cliffwatch`, which those add to. Every renderer replaces the content of the element it is given and may
   be called again with new data; values are seconds, shares or counts; null is unknown and is never drawn as 0. All text
   goes in as text. */
"use strict";

const cliffwatch = (() => {
  const plots = new Map(); // each with the observer of its element's size

  // ---- text ----------------------------------------------------------------------------------------------------

  const digits = (value) => String(Number(value.toPrecision(3)));

  // unit, its size in seconds, and from where the next one is used
  const UNITS = [["µs", 1e-6, 1e-3], ["ms", 1e-3, 1], ["s", 1, 120], ["min", 60, 7200], ["h", 3600, Infinity]];

  /** A latency for people, as `units.format_seconds` writes it: three significant digits and a unit. */
  function seconds(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const rounded = (size) => Number((value / size).toPrecision(3));
    const [unit, size] = UNITS.find(([, one, next]) => Math.abs(rounded(one)) * one < next); // rounded first: 999.6 ms is 1 s
    return `${rounded(size)} ${unit}`;
  }

  /**
   * A share as a percentage, with as many places as its distance to 0 or 100 % needs, so that it is never either.
   * `round` is Math.floor for an attainment and a lower bound, Math.ceil for an upper one: what is just under a target
   * must not read as if it were on it.
   */
  function share(value, round = Math.round) {
    if (value === null || value === undefined) return "–";
    const near = Math.min(value, 1 - value);
    if (near <= 0) return `${(value * 100).toFixed(0)} %`;
    const places = Math.min(7, Math.max(1, Math.ceil(-Math.log10(near * 10) - 1e-9)));
    const scale = 10 ** places;
    return `${(round(Number((value * 100 * scale).toPrecision(13))) / scale).toFixed(places)} %`;
  }

  const attained = (value) => share(value, Math.floor);

  /** An interval of shares, rounded outwards: `98.51–99.83 %`. */
  const interval = (low, high) => (low === null ? "–" : `${share(low, Math.floor).replace(/ %$/, "")}–${share(high, Math.ceil)}`);

  const count = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));
  const plain = (value) => (value === null || value === undefined ? "–" : digits(value));

  /** Time into a run, as minutes:seconds or hours:minutes:seconds. */
  function clock(value) {
    if (value === null || value === undefined) return "–";
    const parts = [Math.floor(value / 3600), Math.floor(value / 60) % 60, Math.floor(value) % 60];
    const text = (parts[0] ? parts : parts.slice(1)).map((part, index) => String(part).padStart(index ? 2 : 1, "0")).join(":");
    return value % 1 ? `${text}.${String(value.toFixed(1)).slice(-1)}` : text;
  }

  const MOMENT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

  /** An instant in Unix seconds, by the reader's own clock. */
  const moment = (value) => (value === null || value === undefined ? "–" : MOMENT.format(new Date(value * 1000)));

  /** How a value is written, by its unit or kind. */
  const byUnit = { s: seconds, share, attained, count, clock, moment, "": plain };
  const IN_CLOCK_STEPS = new Set(["clock", "moment"]);
  const CLOCK_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

  const COUNT_STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

  // ---- elements ------------------------------------------------------------------------------------------------

  function node(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  }

  /** The colour that a custom property has now: `light-dark()` resolved through a probe, for canvas. */
  function color(token) {
    const probe = node("i", { hidden: true });
    probe.style.color = `var(--${token})`; // through the object model: a page may forbid style attributes
    document.body.append(probe);
    const resolved = getComputedStyle(probe).color;
    probe.remove();
    return resolved;
  }

  // ---- uPlot ---------------------------------------------------------------------------------------------------

  const isLog = (data) => data.logY && data.series.some((one) => one.values.some((value) => value > 0));

  function axis(label, format, extra = {}) {
    return {
      label, filter: (_plot, splits) => splits, labelSize: 22, labelFont: "12px system-ui, sans-serif", font: "12px system-ui, sans-serif", gap: 4,
      stroke: () => color("ink-soft"), grid: { stroke: () => color("rule"), width: 1 },
      ticks: { stroke: () => color("rule"), size: 4 },
      values: (_plot, splits) => splits.map((value) => (value === null ? "" : format(value))), ...extra,
    };
  }

  /** Ticks of a logarithmic axis: 1, 2 and 5 of each power of ten within its range. */
  function logSplits(_plot, _axis, low, high) {
    const splits = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      const steps = high / low > 1e3 ? [1] : [1, 2, 5];
      splits.push(...steps.map((step) => Number((step * 10 ** power).toPrecision(3))));
    }
    return splits.filter((value) => value >= low && value <= high);
  }

  /** Reference lines (thresholds) across the plot, each with its words at a place that the data leaves free. */
  function marks(lines, across) {
    return (plot) => {
      const { ctx, bbox, scales } = plot;
      const gap = 5 * devicePixelRatio;
      ctx.save();
      ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      ctx.strokeStyle = ctx.fillStyle = color("ink");
      ctx.setLineDash([gap, 0.8 * gap]);
      for (const line of lines.filter((one) => one.at >= scales[across].min && one.at <= scales[across].max)) {
        const at = Math.round(plot.valToPos(line.at, across, true));
        ctx.beginPath();
        if (across === "y") { ctx.moveTo(bbox.left, at); ctx.lineTo(bbox.left + bbox.width, at); }
        else { ctx.moveTo(at, bbox.top); ctx.lineTo(at, bbox.top + bbox.height); }
        ctx.stroke();
        const width = ctx.measureText(line.label).width;
        const left = at > bbox.left + bbox.width * 0.6 ? at - gap - width : at + gap;
        const [x, y] = across === "x" ? [left, bbox.top + 3 * gap] : freePlace(plot, at, width, gap);
        ctx.fillText(line.label, x, y);
      }
      ctx.restore();
    };
  }

  /** Where words of this width stand above or below a level line: as far right as no series runs through them. */
  function freePlace(plot, at, width, gap) {
    const { bbox } = plot;
    const rightmost = bbox.left + bbox.width - gap - width;
    const places = [];
    for (let x = rightmost; x > bbox.left; x -= width / 4) places.push([x, at - gap], [x, at + 3.2 * gap]);
    const inside = ([, y]) => y - 2.4 * gap > bbox.top && y + gap < bbox.top + bbox.height;
    const free = ([x, y]) => !reaches(plot, x - gap, x + width + gap, y - 2.4 * gap, y + gap);
    return places.find((place) => inside(place) && free(place)) ?? [rightmost, at - gap];
  }

  /** Whether any stroke between two neighbouring points comes into the box. */
  function reaches(plot, left, right, top, bottom) {
    const [xs, ...series] = plot.data;
    const at = (values, index) => ({ x: plot.valToPos(xs[index], "x", true), y: plot.valToPos(values[index], "y", true) });
    return series.some((values) => values.some((value, index) => {
      if (value === null) return false;
      const from = at(values, index);
      const to = index + 1 < values.length && values[index + 1] !== null ? at(values, index + 1) : from;
      if (to.x < left || from.x > right) return false;
      const heightAt = (x) => (to.x === from.x ? from.y : from.y + ((to.y - from.y) * (x - from.x)) / (to.x - from.x));
      const ends = [heightAt(Math.max(left, from.x)), heightAt(Math.min(right, to.x))];
      return Math.max(...ends) > top && Math.min(...ends) < bottom;
    }));
  }

  /** End the plot in `element`, and any whose element has left the page. */
  function unmount(element) {
    for (const [plot, observer] of plots) {
      if (plot.root.isConnected && !element.contains(plot.root)) continue;
      plots.delete(plot);
      observer.disconnect();
      plot.destroy();
    }
  }

  function mount(element, options, data) {
    unmount(element);
    element.replaceChildren();
    const size = () => ({ width: Math.max(200, element.clientWidth), height: options.height });
    const plot = new uPlot({ ...options, ...size(), pxAlign: 1 }, data, element);
    const observer = new ResizeObserver(() => { if (plot.width !== size().width) plot.setSize(size()); });
    observer.observe(element);
    plots.set(plot, observer);
    keyboard(element, plot);
    return plot;
  }

  /** Left and right arrows move the cursor, so that the legend reads out each point. */
  function keyboard(element, plot) {
    element.tabIndex = 0;
    element.onkeydown = (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const last = plot.data[0].length - 1;
      const index = Math.min(last, Math.max(0, (plot.cursor.idx ?? (step > 0 ? -1 : last + 1)) + step));
      plot.setCursor({ left: plot.valToPos(plot.data[0][index], "x"), top: plot.over.clientHeight / 2 });
    };
  }

  const empty = (element, text) => { unmount(element); element.replaceChildren(node("p", { class: "empty" }, text)); };
  const described = (element, text) => { element.setAttribute("role", "group"); element.setAttribute("aria-label", text); };

  const binWidth = ({ data: [xs] }) => (xs.length > 1 ? xs[1] - xs[0] : 1);

  /** A bin is drawn around its start, so the axis goes on for half a bin at both ends: no bar is cut. */
  const binned = (plot, low, high) => [low - binWidth(plot) / 2, high + binWidth(plot) / 2];

  /** Ticks are no closer than bins: what lies before the first bin is none. */
  const clockSteps = (plot) => CLOCK_STEPS.filter((step) => step > binWidth(plot) * 0.999);

  /**
   * Lines, or bars, over even bins of time (or of any number), at the start of each.
   * data: {label, x, series: [{label, token, values, dash?}], band?: [upper, lower] (series indexes), xLabel, yLabel,
   *        unit: "s" | "share" | "count", xUnit?: "clock" | "moment" | ..., logY?, thresholds?: [{at, label}], height?, sync?, bars?}
   */
  function lines(element, data) {
    if (!data.series.some((one) => one.values.some((value) => value !== null))) return empty(element, data.empty ?? "No data yet.");
    described(element, data.label);
    const format = byUnit[data.unit ?? ""];
    const formatX = byUnit[data.xUnit ?? "s"];
    const log = isLog(data);
    const series = data.series.map((one) => ({
      label: one.label, stroke: () => color(one.token), width: 2, dash: one.dash, spanGaps: false,
      points: { show: data.x.length < 40 && !data.bars, size: 5 }, value: (_plot, value) => format(value),
      ...(data.bars && { fill: () => color(one.token), width: 0, paths: uPlot.paths.bars({ size: [0.8, 24] }) }),
    }));
    const hasBand = data.band && data.series.length > 1;
    const values = log ? data.series.map((one) => one.values.map((value) => (value > 0 ? value : null))) : data.series.map((one) => one.values);
    return mount(element, {
      height: data.height ?? 240,
      scales: { x: { time: false, range: binned }, y: log ? { distr: 3 } : { range: (_plot, low, high) => [Math.min(0, low * 1.08), high > 0 ? high * 1.08 : 1] } },
      series: [{ label: "at", value: (_plot, value) => formatX(value) }, ...series],
      bands: hasBand ? [{ series: data.band.map((index) => index + 1), fill: () => color("band") }] : [],
      axes: [
        axis(data.xLabel, formatX, { size: 30, ...(IN_CLOCK_STEPS.has(data.xUnit) && { incrs: clockSteps }), ...(data.xUnit === "moment" && { space: 110 }) }),
        axis(data.yLabel, format, { size: 62, ...(log && { splits: logSplits }), ...(data.unit === "count" && { incrs: COUNT_STEPS }) }),
      ],
      cursor: { sync: data.sync ? { key: data.sync } : undefined, drag: { x: false, y: false } },
      hooks: { draw: [marks(data.thresholds ?? [], "y")] },
    }, [data.x, ...values]);
  }

  /**
   * A distribution over logarithmic bins.
   * data: {label, edges (k + 1), counts (k), token, xLabel, yLabel?, unit, thresholds?: [{at, label}], height?}
   */
  function histogram(element, data) {
    if (!data.counts.some((value) => value > 0)) return empty(element, data.empty ?? "No data yet.");
    described(element, data.label);
    const format = byUnit[data.unit ?? "s"];
    const fill = () => color(data.token).replace("rgb(", "rgba(").replace(")", ", 0.28)");
    return mount(element, {
      height: data.height ?? 220,
      scales: { x: { time: false, distr: 3, range: () => [data.edges[0], data.edges[data.edges.length - 1]] },
        y: { range: (_plot, _low, high) => [0, high * (data.thresholds?.length ? 1.3 : 1.12)] } },
      series: [
        { label: "from", value: (_plot, value) => format(value) },
        { label: data.yLabel ?? "requests", stroke: () => color(data.token), fill, width: 1.5, points: { show: false },
          paths: uPlot.paths.stepped({ align: 1 }), value: (_plot, value) => count(value) },
      ],
      axes: [axis(data.xLabel, format, { size: 30, splits: logSplits }), axis(data.yLabel ?? "requests", count, { size: 58, incrs: COUNT_STEPS })],
      cursor: { drag: { x: false, y: false } },
      hooks: { draw: [marks(data.thresholds ?? [], "x")] },
    }, [data.edges, [...data.counts, 0]]);
  }

  // ---- theme ---------------------------------------------------------------------------------------------------

  const redraw = () => plots.forEach((_observer, plot) => plot.redraw(false));

  /** A button that switches light and dark; the system's choice holds until it is pressed. */
  function themeToggle(button) {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (document.documentElement.dataset.theme ?? (media.matches ? "dark" : "light")) === "dark";
    const show = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; redraw(); };
    button.addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; show(); });
    media.addEventListener("change", show);
    button.hidden = false;
    show();
  }
  addEventListener("beforeprint", redraw);
  addEventListener("afterprint", redraw);

  return {
    lines, histogram, empty, themeToggle, node, color, byUnit, format: { seconds, share, attained, interval, count },
    parts: { axis, described, logSplits, marks, mount },
  };
})();
