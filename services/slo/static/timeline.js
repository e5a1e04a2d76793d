/* Latency and failures over the run. A live run's new bins are added to the same plot, so the cursor stays. */

import { byId } from "./dom.js";
import { plural, seconds } from "./words.js";

const UNITS = { s: "s", ratio: "share" };
const plots = new Map();

export function showTimeline(answer) {
  for (const id of ["timeline", "requests", "failures"]) byId(id).hidden = Boolean(answer.note);
  byId("timeline-note").textContent = answer.note ?? caption(answer);
  if (answer.note) return;
  const { factor, xLabel } = scale(answer.start_s.at(-1) ?? 0);
  const shared = { x: answer.start_s.map((start) => start / factor), xLabel, xUnit: "", sync: "timeline" };
  draw("timeline", {
    ...shared, label: `${answer.label} over time`, unit: UNITS[answer.unit] ?? "", yLabel: answer.label, band: [0, 1],
    series: [{ label: "P95", token: "p95", values: answer.p95 }, { label: "P50", token: "p50", values: answer.p50 }],
  });
  draw("requests", {
    ...shared, label: "Requests over time", unit: "count", yLabel: "requests", height: 150, bars: true,
    series: [{ label: "due", token: "rule-strong", values: answer.requests }],
  });
  const lost = [...answer.failed, ...answer.not_served].some((count) => count > 0);
  byId("failures").hidden = !lost;
  if (lost) {
    draw("failures", {
      ...shared, label: "Failures over time", unit: "count", yLabel: "failed", height: 150, bars: true,
      series: [{ label: "failed", token: "errors", values: answer.failed }, { label: "not served", token: "unsure", values: answer.not_served }],
    });
  }
}

const caption = (answer) => `${plural(answer.start_s.length, "bin")} of ${seconds(answer.width_s)} by intended send time; `
  + "a gap means too few requests in that bin. Left and right arrows move the cursor.";

/** Minutes for what is longer than five of them, so that ticks are round. */
const scale = (length_s) => (length_s > 300 ? { factor: 60, xLabel: "minutes since the start" } : { factor: 1, xLabel: "seconds since the start" });

function draw(id, data) {
  const element = byId(id);
  const key = JSON.stringify([data.label, data.unit, data.xLabel]);
  const present = plots.get(id);
  if (present?.key === key && present.plot?.root.isConnected && data.x.length) {
    const columns = [data.x, ...data.series.map((one) => one.values)];
    const same = JSON.stringify(columns) === present.data;
    present.data = JSON.stringify(columns);
    if (!same) present.plot.setData(columns);
    return;
  }
  plots.set(id, { key, plot: cliffwatch.lines(element, data), data: "" });
}
