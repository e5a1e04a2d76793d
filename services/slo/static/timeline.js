/* Latency and failures over the run. A live run's new bins are added to the same plot, so the cursor stays. */

import { byId } from "./dom.js";
import { plural, seconds } from "./words.js";

const plots = new Map();

export function showTimeline(answer) {
  const unit = { s: "s", ratio: "share" }[answer.unit] ?? "";
  draw("timeline", {
    label: `${answer.label} over time`, x: answer.start_s, unit, sync: "timeline", xLabel: "since the start", yLabel: answer.label,
    series: [{ label: "P95", token: "p95", values: answer.p95 }, { label: "P50", token: "p50", values: answer.p50 }],
    band: [0, 1], empty: "No data yet.",
  });
  draw("failures", {
    label: "Requests and failures over time", x: answer.start_s, unit: "count", sync: "timeline", xLabel: "since the start",
    yLabel: "requests", height: 130, bars: true, empty: "",
    series: [{ label: "due", token: "rule-strong", values: answer.requests }, { label: "failed", token: "errors", values: answer.failed },
      { label: "not served", token: "unsure", values: answer.not_served }],
  });
  byId("timeline-note").textContent = answer.note ?? `${plural(answer.start_s.length, "bin")} of ${seconds(answer.width_s)} by intended send time; `
    + "a gap means too few requests in that bin. Left and right arrows move the cursor.";
}

function draw(id, data) {
  const element = byId(id);
  const key = JSON.stringify([data.label, data.unit]);
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
