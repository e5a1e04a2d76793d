/* The page of SLOs on Prometheus: read the place, ask the API, show the parts; again every ten seconds. */

import * as api from "./api.js";
import { byId, node, show } from "./dom.js";
import { pulse } from "./head.js";
import { objectiveKeys, showAlerts, showHead, showHistory, showList, showObjectives } from "./slo.js";

const EVERY_MS = 10_000;
const DEFAULTS = { slo: "", objective: "", span: "86400" };

let timer = 0;
let turn = 0; // an answer to an older question than the newest is not shown

const place = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.entries(DEFAULTS).map(([key, value]) => [key, given.get(key) || value]));
};
const href = (change) => `#${new URLSearchParams(Object.entries({ ...place(), ...change }).filter(([key, value]) => value !== DEFAULTS[key]))}`;

async function refresh() {
  clearTimeout(timer);
  const mine = ++turn;
  try {
    await showAll(() => mine === turn);
  } catch (error) {
    if (mine !== turn) return;
    if (error instanceof api.ApiError) message(node("h1", {}, error.title), node("p", {}, error.message));
    else pulse("lost", "The service does not answer; trying again. What is shown may be old.");
  }
  if (mine === turn && !document.hidden) timer = setTimeout(refresh, EVERY_MS);
}

async function showAll(isCurrent) {
  const [list, alerts] = await Promise.all([api.slos(), api.alerts().catch(() => null)]);
  if (!isCurrent()) return;
  const name = place().slo || list.slos[0]?.name;
  showList(list.slos, name, (slo) => href({ slo, objective: "" }));
  if (list.note) return message(node("h1", {}, "No SLO is watched"), node("p", {}, list.note));
  const { source, slo } = await api.slo(name);
  if (!isCurrent()) return;
  message();
  document.title = `${slo.name} – cliffwatch`;
  showHead(slo, source);
  showObjectives(slo);
  showAlerts(slo, alerts);
  pulse(source.problem ? "lost" : "live", source.problem ? "Old figures" : "Live");
  const keys = objectiveKeys(slo);
  byId("objective").replaceChildren(...keys.map(({ key, text }) => node("option", { value: key }, text)));
  const chosen = keys.find(({ key }) => key === place().objective) ?? keys[0];
  byId("objective").value = chosen.key;
  byId("span").value = place().span;
  const history = await api.history(slo.name, place().span).catch((error) => {
    if (error instanceof api.ApiError) return { problem: error.message };
    throw error;
  });
  if (isCurrent()) showHistory(history, chosen);
}

/** Words in place of an SLO; none shows the SLO. */
function message(...words) {
  byId("message").hidden = words.length === 0;
  byId("slo").hidden = words.length > 0;
  if (words.length) {
    pulse("still", "");
    show(byId("message"), ...words);
  }
}

function start() {
  cliffwatch.themeToggle(byId("theme"));
  for (const id of ["objective", "span"]) byId(id).addEventListener("change", (event) => { location.hash = href({ [id]: event.target.value }); });
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("content").focus(); });
  addEventListener("hashchange", refresh);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  refresh();
}

start();
