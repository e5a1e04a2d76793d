/* The list of runs. */

import { badge, byId, node, show } from "./dom.js";
import { href } from "./place.js";
import { ago, plural } from "./words.js";

const HOW_TO_START = "cliffwatch run longtail --target http://127.0.0.1:8000 --out RUNS/first";

export function showRuns(list, current) {
  show(byId("runs"), list.runs.map((run) => item(run, run.id === current)));
  byId("rail-title").textContent = list.total ? `Runs (${list.total.toLocaleString("en-US")})` : "Runs";
  const hidden = list.total - list.runs.length;
  byId("runs-note").textContent = hidden > 0 ? `${plural(hidden, "older run")} not shown; /v1/runs?limit=1000 lists more.` : "";
}

function item(run, isCurrent) {
  const state = run.state === "complete" ? run.verdict ?? run.state : run.state;
  const facts = [run.model, ago(run.created_unix_s ?? run.changed_unix_s)].filter(Boolean).join(" · ");
  return node("li", { "data-key": run.id },
    node("a", { href: href({ run: run.id }), "aria-current": isCurrent && "page" },
      node("span", { class: "run-name" }, run.id), badge(state), node("span", { class: "small soft" }, facts)));
}

/** What an empty folder says. */
export const noRuns = () => [
  node("h1", {}, "No runs yet"),
  node("p", {}, "This folder holds no run. Start one, and it shows up here within seconds:"),
  node("pre", { class: "command" }, node("code", {}, HOW_TO_START)),
  node("p", { class: "soft small" }, node("code", {}, "RUNS"), " is the folder that this service was started with. No server at hand? ",
    node("code", {}, "cliffwatch demo"), " brings one."),
];
