/* A latency over one dimension, a line for each value of another, with intervals. Comes after charts.js. */
"use strict";

cliffwatch.curves = (() => {
  const { byUnit, color, empty, format } = cliffwatch;
  const { axis, described, logSplits, marks, mount } = cliffwatch.parts;
  const TOKENS = ["p50", "p95", "p99", "met", "errors", "unsure", "rule-strong", "ink"];
  const STEPS = 24; // of a straight piece on a logarithmic axis
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

  /** Fitted pieces, dashed: straight in the axes' own values, so curves where one of them is logarithmic. */
  function pieces(data) {
    return (plot) => {
      const { ctx } = plot;
      ctx.save();
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
      for (const { c, corners } of data.pieces ?? []) {
        if (!plot.series[c + 1].show) continue;
        ctx.strokeStyle = color(TOKENS[c % TOKENS.length]);
        ctx.beginPath();
        corners.slice(1).forEach(([x1, y1], at) => {
          const [x0, y0] = corners[at];
          for (let part = 0; part <= STEPS; part++) {
            const [x, y] = [x0 + ((x1 - x0) * part) / STEPS, y0 + ((y1 - y0) * part) / STEPS];
            if (y > 0) ctx.lineTo(plot.valToPos(x, "x", true), plot.valToPos(y, "y", true));
          }
        });
        ctx.stroke();
      }
      ctx.restore();
    };
  }

  /** The intervals of breaks, shaded over the whole height. */
  function breaks(data) {
    return (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      for (const { c, low, high } of data.breaks ?? []) {
        if (!plot.series[c + 1].show) continue;
        const [from, to] = [low, high].map((x) => plot.valToPos(x, "x", true));
        ctx.globalAlpha = 0.16;
        ctx.fillStyle = color(TOKENS[c % TOKENS.length]);
        ctx.fillRect(from, bbox.top, Math.max(1, to - from), bbox.height);
      }
      ctx.restore();
    };
  }

  /**
   * data: {label, x: [number a row], xLabels: [text], xLabel, columns: [text], cells[r][c]: {value, n, few, low, high},
   *   unit, yLabel, pieces?: [{c, corners: [[x, y]]}] (straight pieces through column c's points),
   *   breaks?: [{c, at, low, high, label}] (where two of them meet, and its interval), height?}
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
      hooks: { drawClear: [breaks(data)], draw: [whiskers(data), pieces(data), marks(data.breaks ?? [], "x")] },
    }, [data.x, ...data.columns.map((_name, c) => data.cells.map((line) => line[c].value))]);
  }

  /** At most eight labels, the first among them. */
  function thinned(splits, data) {
    const every = Math.ceil(splits.length / 8);
    return splits.map((_value, r) => (r % every ? "" : data.xLabels[r]));
  }

  return curves;
})();
