/* Everything else that the manifest holds. */

import { byId, node, show } from "./dom.js";
import { count, date, seconds } from "./words.js";

export function showFacts(run) {
  const facts = [
    ["Workload", run.name], ["Seed", String(run.seed)], ["Schedule hash", node("code", {}, run.schedule_hash)],
    ["Began", date(run.created_unix_s)], ["Ended", run.ended_unix_s === null ? "not yet" : date(run.ended_unix_s)],
    ["Load sent for", seconds(run.load_s)], ["Phases", phases(run)], ["Workers", workers(run)],
    ["Versions", Object.entries(run.versions).map(([name, version]) => `${name} ${version}`).join(", ") || "–"],
  ];
  show(byId("facts"),
    node("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [node("dt", {}, name), node("dd", {}, value)])),
    node("details", {}, node("summary", {}, "Workload as it was run"),
      node("pre", { class: "command", tabindex: "0" }, node("code", {}, JSON.stringify(run.workload, null, 2)))));
}

const phases = (run) => Object.entries(run.phases).map(([name, rows]) => `${name} ${count(rows)}`).join(", ") || "–";
const workers = (run) => run.workers.map((one) => `${one.shard}: ${one.state}, ${count(one.rows)} rows (${one.host})`).join("; ") || "–";
