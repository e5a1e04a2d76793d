/* How the requests ended. */

import { byId, node, show } from "./dom.js";
import { table } from "./table.js";
import { count, plural, share } from "./words.js";

const STATES = { ok: "ok", failed: "failed", not_served: "partial" };
const KINDS = { ok: "success", failed: "failed by the server", not_served: "not served" };

export function showOutcomes(answer) {
  const box = byId("outcomes");
  if (answer.note) return show(box, node("p", { class: "empty" }, answer.note));
  show(box, table(`${plural(answer.n, "request")} of the ${answer.phase} phase`, ["Outcome", "~drawn", ">Requests", ">Share"], answer.outcomes.map(outcomeRow)),
    answer.errors.length ? table("Most frequent errors", ["Outcome", "Message", ">Requests"], answer.errors.map(errorRow)) : null);
}

function outcomeRow(one) {
  const bar = node("span", { class: "share", "data-state": STATES[one.kind] });
  bar.style.width = `${(one.share * 100).toFixed(2)}%`;
  return node("tr", { "data-key": one.outcome }, node("th", { scope: "row" }, one.outcome, " ", node("span", { class: "soft" }, KINDS[one.kind])),
    node("td", { class: "bar-cell", "aria-hidden": "true" }, bar), node("td", { class: "number" }, count(one.n)), node("td", { class: "number" }, share(one.share)));
}

const errorRow = (one) => node("tr", {}, node("th", { scope: "row" }, one.outcome), node("td", { class: "message-cell" }, one.message), node("td", { class: "number" }, count(one.n)));
