/* One SLO as it stands, what fires and what fired, and its course over time. */

import { badge, byId, node, show } from "./dom.js";
import { attained, count, date, goal, interval, span } from "./words.js";

const TOKENS = ["p95", "p50", "errors", "unsure"];
const states = (state) => badge(state, state.replaceAll("_", " "));

export function showList(slos, current, href) {
  show(byId("slos"), slos.map((slo) => node("li", { "data-key": slo.name },
    node("a", { href: href(slo.name), "aria-current": slo.name === current && "page" },
      node("span", { class: "run-name" }, slo.name), states(slo.state),
      node("span", { class: "small soft" }, least(slo.objectives))))));
}

function least(objectives) {
  const known = objectives.map((one) => one.budget_left).filter((left) => left !== null);
  return known.length ? `budget left ${percent(Math.min(...known))}` : "budget not known";
}

const percent = (value) => (value === null ? "–" : `${(value * 100).toFixed(1)} %`);

export function showHead(slo, source) {
  const asked = source.as_of_unix_s === null ? "Prometheus never answered" : `as of ${date(source.as_of_unix_s)}`;
  const lines = source.problem === null ? [] : [`${source.problem}. What is shown is ${source.as_of_unix_s === null ? "not known" : `${span(Date.now() / 1000 - source.as_of_unix_s)} old`}.`];
  lines.push(...source.warnings.map((text) => `Prometheus warns: ${text}`));
  show(byId("head"),
    node("div", { class: "bar" }, node("h1", {}, slo.name), node("p", { class: "badges" }, states(slo.state), slo.page ? badge("burning", "a page fires") : "")),
    node("p", { class: "soft small" }, asked),
    lines.length ? node("div", { class: "banner", "data-state": "stale" }, ...lines.map((text) => node("p", {}, text))) : "");
}

export function showObjectives(slo) {
  const notes = [...new Set(slo.objectives.flatMap((one) => one.notes))];
  show(byId("objectives"),
    node("div", { class: "scroll" }, node("table", { class: "table" },
      node("thead", {}, node("tr", {}, ...["Objective", "State", "Attained", "Events", "Budget left", "Burn rates", "Lasts"].map((text, at) =>
        node("th", { scope: "col", class: at > 1 && at < 5 ? "number" : null }, text)))),
      node("tbody", {}, ...slo.objectives.flatMap((one) => one.groups.map((group) => row(one, group)))))),
    ...notes.map((text) => node("p", { class: "small soft" }, text)));
}

function row(one, group) {
  const sure = group.low === null ? "" : node("small", { class: "soft" }, ` ${interval(group.low, group.high)}`);
  return node("tr", { "data-key": keyOf(one, group) },
    node("th", { scope: "row" }, `${one.label}, ${goal(one.target)} `, node("span", { class: "soft" }, groupText(group))),
    node("td", {}, states(group.state)),
    node("td", { class: "number" }, attained(group.attainment), group.enough === false ? " †" : "", sure),
    node("td", { class: "number" }, group.events === null ? "–" : count(Math.round(group.events))),
    node("td", { class: "number" }, percent(group.budget_left)),
    node("td", { class: "burns" }, ...group.burns.map((burn) => node("div", { class: burn.fires ? null : "soft" },
      `${span(burn.long.window_s)} ${rate(burn.long)} / ${span(burn.short.window_s)} ${rate(burn.short)}${burn.fires ? ` ${burn.severity}` : ""}`))),
    node("td", {}, lasts(group.forecast)));
}

const rate = ({ burn_rate: value }) => (value === null ? "–" : `${Number(value.toPrecision(3))}×`);
const groupText = (group) => Object.values(group.labels).join(", ");
const keyOf = (one, group) => JSON.stringify([one.objective, group.labels]);

function lasts(forecast) {
  if (forecast === null) return "–";
  if (forecast.after_s === 0) return "spent";
  const until = (length_s) => (length_s === null ? "no end" : span(length_s));
  return `${until(forecast.after_s)} (${until(forecast.earliest_s)} to ${until(forecast.latest_s)})`;
}

/** What can be looked at over time: each objective in each group, the least budget first. */
export function objectiveKeys(slo) {
  return slo.objectives.flatMap((one) => one.groups.map((group) => ({
    key: keyOf(one, group), left: group.budget_left ?? Infinity, text: [one.label, groupText(group)].filter(Boolean).join(" · "),
  }))).sort((one, other) => one.left - other.left);
}

export function showHistory(history, chosen) {
  const one = history.objectives?.find((objective) => objective.groups.some((group) => keyOf(objective, group) === chosen.key));
  const group = one?.groups.find((candidate) => keyOf(one, candidate) === chosen.key);
  byId("history-note").textContent = history.problem ?? one?.note ?? `every ${span(history.step_s ?? 0)}; a gap means that nothing is known. Left and right arrows move the cursor.`;
  if (!group) {
    for (const id of ["budget", "burn"]) cliffwatch.empty(byId(id), history.problem ? "Not known." : "No data yet.");
    return;
  }
  const shared = { x: history.times_unix_s, xLabel: "time", xUnit: "moment", sync: "slo" };
  draw("budget", { ...shared, label: "Budget left over time", unit: "share", yLabel: "left",
    thresholds: [{ at: 0, label: "spent" }], series: [{ label: "left", token: "p50", values: group.budget_left }] });
  const windows = Object.keys(group.burn_rates).filter((window) => window in one.limits);
  draw("burn", { ...shared, label: "Burn rates over time", unit: "", yLabel: "times too fast",
    thresholds: windows.map((window) => ({ at: one.limits[window], label: `${span(Number(window))} alerts above ${Number(one.limits[window].toPrecision(3))}` })),
    series: windows.map((window, at) => ({ label: span(Number(window)), token: TOKENS[at % TOKENS.length], values: group.burn_rates[window] })) });
}

const drawn = new Map();

function draw(id, data) {
  const key = JSON.stringify(data);
  if (drawn.get(id) === key) return;
  drawn.set(id, key);
  cliffwatch.lines(byId(id), data);
}

export function showAlerts(slo, alerts) {
  if (alerts === null) return show(byId("alerts"), node("p", { class: "empty" }, "What fired is not known."));
  const now = (alerts.prometheus ?? []).filter((one) => one.slo === slo.name);
  const past = alerts.events.filter((one) => one.labels.slo === slo.name);
  const ours = alerts.firing.filter((one) => one.slo === slo.name).map((one) => `${one.burn.alert} (${one.burn.severity}), ${one.objective}`);
  show(byId("alerts"),
    node("p", {}, ours.length ? `By these figures there fires: ${ours.join("; ")}.` : "By these figures nothing fires."),
    node("p", {}, alerts.prometheus === null ? "What Prometheus has is not known." : now.length
      ? `Prometheus has: ${now.map((one) => `${one.name} ${one.state}`).join(", ")}.` : "Prometheus has no alert of it."),
    alerts.events_problem ? node("p", { class: "soft small" }, `Past alerts may be missing: ${alerts.events_problem}.`) : "",
    past.length ? node("div", { class: "scroll" }, node("table", { class: "table" },
      node("thead", {}, node("tr", {}, ...["Alert", "Objective", "Began", "Lasted"].map((text) => node("th", { scope: "col" }, text)))),
      node("tbody", {}, ...past.map(event)))) : node("p", { class: "empty" }, "No alert in the last day."));
}

function event(one) {
  const lasted = one.ended_unix_s === null ? "still fires" : span(one.ended_unix_s - one.started_unix_s);
  return node("tr", { "data-key": one.fingerprint + one.started_unix_s }, node("th", { scope: "row" }, one.name),
    node("td", {}, one.labels.objective ?? ""), node("td", {}, date(one.started_unix_s)), node("td", {}, lasted));
}
