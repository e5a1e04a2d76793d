/* What the run is, how far it has come, and whether to trust it. */

import { badge, byId, node, show } from "./dom.js";
import { clock, count, date, plural, seconds, span } from "./words.js";

const SILENT_S = 15;

export function showHead(run) {
  const facts = [run.target, run.model, run.engine, `began ${date(run.created_unix_s)}`].filter(Boolean).join(" · ");
  show(byId("head"),
    node("div", { class: "bar" }, node("h1", {}, run.id),
      node("p", { class: "badges" }, badge(run.state), " ", run.verdict ? badge(run.verdict) : "")),
    node("p", { class: "soft small" }, facts),
    banner(run),
    figures(run));
}

function banner(run) {
  const lines = run.reasons.map((reason) => reason.message);
  if (run.partial_reason && !lines.some((text) => text.includes(run.partial_reason))) lines.unshift(`Ended early: ${run.partial_reason}.`);
  const silent_s = Date.now() / 1000 - run.changed_unix_s;
  if (run.state === "running" && !run.live && silent_s > SILENT_S) {
    lines.push(`No load generator on this machine is writing this run; its files were last written ${span(silent_s)} ago. If it was killed, the run stays as it is.`);
  }
  lines.push(...run.warnings);
  if (!lines.length) return "";
  return node("div", { class: "banner", "data-state": run.verdict ?? run.state }, ...lines.map((text) => node("p", {}, text)));
}

function figures(run) {
  const { measured = 0 } = run.phases;
  const planned = run.planned_duration_s ? `of ${seconds(run.planned_duration_s)}` : run.planned_requests ? `of ${plural(run.planned_requests, "request")}` : "";
  const elapsed = run.load_s ?? run.elapsed_s;
  const rows = [
    ["Requests recorded", count(run.rows), run.accounting ? `${count(run.accounting.issued)} issued` : "so far"],
    ["Judged", count(measured), `without ${count(run.rows - measured)} of warm-up and cold start`],
    ["Load sent for", seconds(elapsed), planned],
    ["Arrivals", run.open_loop ? "open loop" : "closed loop", `prompt length by ${run.prompt_method.replaceAll("_", " ")}`],
  ];
  if (run.accounting) {
    const { failed, cancelled, late, lost } = run.accounting;
    rows.splice(2, 0, ["Failed", count(failed), `${count(cancelled)} cancelled · ${count(late)} late · ${count(lost)} lost`]);
  }
  return node("dl", { class: "figures" }, ...rows.map(([name, value, note]) => node("div", { "data-key": name },
    node("dt", {}, name), node("dd", {}, value), node("dd", { class: "note" }, note))));
}

/** The line at the top right: is what is shown current? The clock beside it is not read out at every tick. */
export function pulse(state, text) {
  byId("pulse").dataset.pulse = state;
  const line = byId("pulse-text");
  if (line.textContent !== text) line.textContent = text;
  byId("pulse-clock").textContent = state === "lost" ? "" : clock(Date.now() / 1000);
}
