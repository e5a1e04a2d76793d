/* Latency and failures over the run. A live run's new bins are added to the same plot, so the cursor stays. */

import { byId } from "./dom.js";
import { plural, seconds } from "./words.js";

const UNITS = { s: "s", ratio: "share" };
const plots = new Map();

/** `limits` are the thresholds of the run's objectives on this metric for requests of every length. */
export function showTimeline(answer, limits) {
  for (const id of ["timeline", "requests", "failures"]) byId(id).hidden = Boolean(answer.note);
  byId("timeline-note").textContent = answer.note ?? caption(answer);
  if (answer.note) return;
  const shared = { x: answer.start_s, xLabel: "time into the run", xUnit: "clock", sync: "timeline" };
  draw("timeline", {
    ...shared, label: `${answer.label} over time`, unit: UNITS[answer.unit] ?? "", yLabel: answer.label, band: [0, 1],
    thresholds: limits.map((at) => ({ at, label: `objective ${seconds(at)}` })),
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

function draw(id, data) {
  const element = byId(id);
  const key = JSON.stringify([data.label, data.unit, data.thresholds]);
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
