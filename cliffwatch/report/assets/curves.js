/* A latency over one dimension, a line for each value of another, with intervals. Comes after charts.js. */
"use strict";

cliffwatch.curves = (() => {
  const { byUnit, color, empty, format } = cliffwatch;
  const { axis, described, logSplits, marks, mount } = cliffwatch.parts;
  const TOKENS = ["p50", "p95", "p99", "met", "errors", "unsure", "rule-strong", "ink"];
  const isWide = (values) => values.length > 1 && Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) >= 8;

  /** A whisker from low to high at each point that has an interval. */
  function whiskers(data) {
    return (plot) => {
      const { ctx } = plot;
      ctx.save();
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash([]);
      data.cells.forEach((line, r) => line.forEach((cell, c) => {
        if (cell.value === null || cell.low === null || cell.low === undefined || !plot.series[c + 1].show) return;
        const x = plot.valToPos(data.x[r], "x", true) + (c - (line.length - 1) / 2) * 3 * devicePixelRatio;
        ctx.strokeStyle = color(TOKENS[c % TOKENS.length]);
        ctx.beginPath();
        ctx.moveTo(x, plot.valToPos(cell.low, "y", true));
        ctx.lineTo(x, plot.valToPos(cell.high, "y", true));
        ctx.stroke();
      }));
      ctx.restore();
    };
  }

  /**
   * data: {label, x: [number a row], xLabels: [text], xLabel, columns: [text], cells[r][c]: {value, n, few, low, high},
   *   unit, yLabel, marks?: [{at, label}], extra?: [{label, x: [..], y: [..]}] (fitted lines), height?}
   */
  function curves(element, data) {
    const known = data.cells.flatMap((line) => line.flatMap((cell) => [cell.value, cell.low, cell.high])).filter((value) => value > 0);
    if (!known.length || data.x.length < 2) return empty(element, data.empty ?? "Too few points for a line.");
    described(element, data.label);
    const written = byUnit[data.unit ?? "s"];
    const [logX, logY] = [isWide(data.x), isWide(known)];
    const ends = [Math.min(...data.x), Math.max(...data.x)];
    const pad = (low, high) => (logX ? [low / 1.15, high * 1.15] : [low - (high - low) * 0.05, high + (high - low) * 0.05]);
    const series = data.columns.map((label, c) => ({
      label, stroke: () => color(TOKENS[c % TOKENS.length]), width: 2, spanGaps: true, points: { show: true, size: 6 },
      value: (_plot, value, _series, r) => (value === null || r === null ? "–" : `${written(value)} (n ${format.count(data.cells[r][c].n)}${data.cells[r][c].few ? " †" : ""})`),
    }));
    const nearest = (value) => data.xLabels[data.x.indexOf(value)] ?? "";
    return mount(element, {
      height: data.height ?? 260,
      scales: {
        x: { time: false, ...(logX && { distr: 3 }), range: () => pad(...ends) },
        y: { ...(logY && { distr: 3 }), range: () => (logY ? [Math.min(...known) / 1.2, Math.max(...known) * 1.2] : [0, Math.max(...known) * 1.1]) },
      },
      series: [{ label: data.xLabel, value: (_plot, value) => nearest(value) || "–" }, ...series],
      axes: [
        axis(data.xLabel, byUnit[""], { size: 30, splits: () => data.x, values: (_plot, splits) => thinned(splits, data) }),
        axis(data.yLabel, written, { size: 62, ...(logY && { splits: logSplits }) }),
      ],
      cursor: { drag: { x: false, y: false } },
      hooks: { draw: [whiskers(data), marks(data.marks ?? [], "x")] },
    }, [data.x, ...data.columns.map((_name, c) => data.cells.map((line) => line[c].value))]);
  }

  /** At most eight labels, the first among them. */
  function thinned(splits, data) {
    const every = Math.ceil(splits.length / 8);
    return splits.map((_value, r) => (r % every ? "" : data.xLabels[r]));
  }

  return curves;
})();
