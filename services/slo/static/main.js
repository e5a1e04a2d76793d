/* The page: read the place, ask the API, show the parts; again every two seconds while a run is going on. */

import * as api from "./api.js";
import { showAttainment } from "./attainment.js";
import { byId, node, show } from "./dom.js";
import { showFacts } from "./facts.js";
import { liveText, pulse, showHead } from "./head.js";
import { showHeatmap, watchHeatmap } from "./heatmap.js";
import { showOutcomes } from "./outcomes.js";
import * as place from "./place.js";
import { noRuns, showRuns } from "./runs.js";
import { showTimeline } from "./timeline.js";

const LIVE_MS = 2000;
const IDLE_MS = 5000;
const DEFAULT_THRESHOLD = "1";
const NARROW = matchMedia("(max-width: 60rem)");

let timer = 0;
let turn = 0; // an answer to an older question than the newest is not shown

async function refresh() {
  clearTimeout(timer);
  const mine = ++turn;
  let wait_ms = IDLE_MS;
  try {
    const isLive = await showAll(() => mine === turn);
    if (mine !== turn) return;
    wait_ms = isLive ? LIVE_MS : IDLE_MS;
    pulse(isLive ? "live" : "still", liveText(isLive, Date.now() / 1000));
  } catch (error) {
    if (mine !== turn) return;
    wait_ms = showTrouble(error);
  }
  if (!document.hidden) timer = setTimeout(refresh, wait_ms);
}

async function showAll(isCurrent) {
  const list = await api.runs();
  if (!isCurrent()) return false;
  if (!place.read().run && list.runs.length) place.go({ run: list.runs[0].id }, { replace: true });
  const { run: id, metric, statistic } = place.read();
  const threshold = statistic === "attainment" ? place.read().threshold || DEFAULT_THRESHOLD : "";
  showRuns(list, id);
  if (!id) return message(noRuns());
  const [run, attainment, heatmap, timeline, outcomes] = await Promise.all([
    api.detail(id), api.attainment(id), api.heatmap(id, metric, statistic, threshold), api.timeline(id, metric), api.outcomes(id),
  ]);
  if (!isCurrent()) return false;
  message(null);
  document.title = `${run.id} – cliffwatch`;
  showHead(run);
  showAttainment(attainment);
  showHeatmap(heatmap, limitOf(attainment.judgement, metric));
  showTimeline(timeline);
  showOutcomes(outcomes);
  showFacts(run);
  return run.state === "running";
}

/** Threshold of the objective on that metric for requests of every length; null where there is none. */
function limitOf(judgement, metric) {
  const figure = (one) => `${one.sli}${one.clock === "intended" ? "_user" : ""}_s`;
  return judgement?.objectives.find((one) => figure(one) === metric && !one.input_tokens)?.threshold_s ?? null;
}

/** Words in place of a run; null shows the run. Always false: nothing here is live. */
function message(content) {
  byId("message").hidden = content === null;
  byId("run").hidden = content !== null;
  if (content) show(byId("message"), ...content);
  return false;
}

function showTrouble(error) {
  if (!(error instanceof api.ApiError)) {
    pulse("lost", "The service does not answer; trying again. What is shown may be old.");
    return LIVE_MS;
  }
  pulse("still", error.title);
  const { detail, field, value, allowed, file } = error.problem;
  const place_ = [file, field].filter(Boolean).join(", ");
  if (error.status === 404) {
    message([node("h1", {}, "No such run"), node("p", {}, `There is no run ${place.read().run} in this folder. If it is about to start, it shows up here by itself.`)]);
  } else {
    message([node("h1", {}, error.title), node("p", {}, [place_, detail].filter(Boolean).join(": ")),
      node("p", { class: "soft small" }, [value && `Found ${value}.`, allowed && `Allowed: ${allowed}.`].filter(Boolean).join(" "))]);
  }
  return LIVE_MS;
}

// ---- controls ----------------------------------------------------------------------------------------------------

async function fillChoices() {
  const { metrics, statistics } = await api.choices();
  const option = (value, label) => node("option", { value }, label);
  byId("metric").replaceChildren(...metrics.map((one) => option(one.name, one.label)));
  byId("statistic").replaceChildren(...statistics.map((name) => option(name, /^p\d/.test(name) ? name.toUpperCase() : name)));
  showChoices();
}

function showChoices() {
  const { metric, statistic, threshold } = place.read();
  byId("metric").value = metric;
  byId("statistic").value = statistic;
  byId("threshold").value = threshold || DEFAULT_THRESHOLD;
  for (const part of document.querySelectorAll('#threshold, [for="threshold"]')) part.hidden = statistic !== "attainment";
}

function start() {
  cliffwatch.themeToggle(byId("theme"));
  watchHeatmap();
  for (const id of ["metric", "statistic", "threshold"]) byId(id).addEventListener("change", (event) => place.go({ [id]: event.target.value }));
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("content").focus(); });
  const fold = () => { byId("rail").open = !NARROW.matches; };
  NARROW.addEventListener("change", fold);
  fold();
  byId("runs").addEventListener("click", () => { if (NARROW.matches) byId("rail").open = false; });
  addEventListener("hashchange", () => { showChoices(); refresh(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  fillChoices().catch(() => {}).finally(refresh);
}

start();
