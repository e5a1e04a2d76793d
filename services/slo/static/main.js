/* The page: read the place, ask the API, show the parts; again every two seconds while a run is going on. */

import * as api from "./api.js";
import { showAttainment } from "./attainment.js";
import { PAGE, showCell, watchCell } from "./cell.js";
import { showCached, watchCached } from "./cached.js";
import { byId, node, show } from "./dom.js";
import { showEngine } from "./engine.js";
import { showFacts } from "./facts.js";
import { pulse, showHead } from "./head.js";
import { showHeatmap, watchHeatmap } from "./heatmap.js";
import { refuseKnee, showKnee, watchKnee } from "./knee.js";
import { showOutcomes } from "./outcomes.js";
import * as place from "./place.js";
import { noRuns, showRuns } from "./runs.js";
import { showTimeline } from "./timeline.js";
import { showTrust } from "./trust.js";
import { refuseUntried, showUntried, watchUntried } from "./untried.js";
import { fillUse, refuseUse, showUse, showUseChoices, watchUse } from "./use.js";
import { statisticWords } from "./words.js";

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
    pulse(isLive ? "live" : "still", isLive ? "Live" : "Up to date");
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
  const here = place.read();
  const { run: id, metric } = here;
  showRuns(list, id);
  const known = list.runs.find((run) => run.id === id);
  if (!id) return message(noRuns());
  if (!known && list.runs.length === list.total) return message(noSuchRun(id));
  if (known?.state === "damaged") return message([node("h1", {}, `${id} is damaged`), node("p", {}, known.problem)]);
  const [run, attainment, heatmap, timeline, outcomes, engine, cell, cached, findings, untried, knee, use] = await Promise.all([
    api.detail(id), tried(api.attainment(id)), tried(grid(here)), tried(api.timeline(id, metric)), tried(api.outcomes(id)), tried(api.engine(id)), tried(cellOf(here)), tried(cachedOf(here)), tried(findingsOf(here)), tried(untriedOf(here)), tried(kneeOf(here, known)), tried(useOf(here)),
  ]);
  if (!isCurrent()) return false;
  message(null);
  document.title = `${run.id} – cliffwatch`;
  showHead(run);
  part("attainment", attainment, showAttainment);
  const objectives = (attainment.answer?.judgement?.objectives ?? []).filter((one) => one.figure === metric);
  part("heatmap", heatmap, (answer) => showHeatmap(answer, objectives, findings.answer?.found ?? []));
  byId("findings").textContent = findings.answer && !heatmap.answer?.note ? findings.answer.says : "";
  part("cell", cell, (answer) => showCell(answer, heatmap.answer));
  part("cached-words", cached, showCached);
  untried.error ? refuseUntried(untried.error) : showUntried(untried.answer);
  knee.error ? refuseKnee(told(knee.error)) : showKnee(knee.answer, list.runs, id);
  use.error ? refuseUse(told(use.error)) : showUse(use.answer);
  part("timeline", timeline, (answer) => showTimeline(answer, objectives.filter((one) => !one.input_tokens).map((one) => one.threshold_s)));
  part("outcomes", outcomes, showOutcomes);
  part("engine", engine, showEngine);
  showTrust(run);
  showFacts(run);
  return run.state === "running";
}

/** The heatmap; `auto` is P95, or P50, or the mean, as long as most cells have too few requests for the one before. */
async function grid({ run: id, metric, statistic, threshold, rows, columns }) {
  const ask = (chosen) => api.heatmap(id, { metric, statistic: chosen, rows, columns, ...(chosen === "attainment" && { threshold: threshold || DEFAULT_THRESHOLD }) });
  if (statistic !== "auto") return ask(statistic);
  for (const [chosen, insteadOf] of [["p95"], ["p50", "P95"]]) {
    const answer = await ask(chosen);
    const held = answer.counts.flat().filter((n) => n > 0).length;
    const shown = answer.values.flat().filter((value) => value !== null).length;
    if (shown * 2 >= held) return { ...answer, insteadOf };
  }
  return { ...await ask("mean"), insteadOf: "P50" };
}

/** Where the metric jumps along the rows, by the statistic that the heatmap would begin with. */
const findingsOf = ({ run: id, metric, statistic, rows, columns }) => (
  api.findings(id, { metric, statistic: /^p(50|90|95)$|^mean$/.test(statistic) ? statistic : "p50", rows, columns }));

/** The metric by cache state over length, a grid for each batch size; null for what is no latency. */
async function cachedOf({ run: id, metric, statistic }) {
  const chosen = /^p\d|^mean$/.test(statistic) ? statistic : "p50";
  return /_s$/.test(metric) ? api.heatmaps(id, { metric, statistic: chosen, rows: "input_tokens", columns: "cache", facet: "batch" }) : null;
}

/** What the point that is asked for would cost; null where none is, or the metric is no latency. */
async function untriedOf({ run: id, metric, statistic, at_tokens: tokens, at_batch: batch, at_cached: cached, at_far: far }) {
  byId("untried-card").hidden = !/_s$/.test(metric);
  if (!tokens || !/_s$/.test(metric)) return null;
  const chosen = /^p\d|^mean$/.test(statistic) ? statistic : "p50";
  return api.untried(id, { metric, statistic: chosen, input_tokens: tokens, batch, ...(cached && { cached }), ...(far && { extrapolate: true }) });
}

/** The knees of a run that is over, and those of the run it is compared with; null of one that is going on. */
async function kneeOf({ run: id, metric, knee_axis: axis, against }, known) {
  if (known?.state === "running") return null;
  const knees = await api.knees(id, { metric, axis });
  if (!against) return { knees, against: null, moves: null };
  const [other, moves] = await Promise.all([api.knees(against, { metric, axis: knees.axis }), api.kneeMoves(id, { metric, axis: knees.axis, against })]);
  return { knees, against: other, moves };
}

/** How much of the hardware was used; null while it is not known which. Of a run of both cache states: uncached. */
async function useOf({ run: id, hardware, model, part }) {
  if (!hardware || !model) return null;
  const asked = { hardware, model, part };
  try {
    return await api.use(id, asked);
  } catch (error) {
    if (error.problem?.field !== "cache" || !/several/.test(error.problem.detail)) throw error;
    return api.use(id, { ...asked, cached: false });
  }
}

/** The requests of the cell that is open; null where none is. */
async function cellOf({ run: id, metric, rows, columns, row, column, offset }) {
  return row && column ? api.cell(id, { metric, rows, columns, row, column, offset: offset || "0", limit: PAGE }) : null;
}

/** An answer, or the refusal of this part alone; an unreachable service is thrown on. */
const tried = (asked) => asked.then((answer) => ({ answer }), (error) => {
  if (error instanceof api.ApiError) return { error };
  throw error;
});

function part(id, { answer, error }, render) {
  for (const beside of document.querySelectorAll(`[data-part="${id}"]`)) beside.hidden = Boolean(error);
  if (error) show(byId(id), ...refusal(error));
  else render(answer);
}

/** Words in place of a run; null shows the run. Always false: nothing here is live. */
function message(content) {
  if (content) document.title = "cliffwatch";
  byId("message").hidden = content === null;
  byId("run").hidden = content !== null;
  if (content) show(byId("message"), ...content);
  return false;
}

function showTrouble(error) {
  if (error instanceof api.ApiError) {
    pulse("still", error.title);
    message([node("h1", {}, error.title), ...refusal(error)]);
  } else {
    pulse("lost", "The service does not answer; trying again. What is shown may be old.");
  }
  return LIVE_MS;
}

/** A refusal in one line, where a picture would stand. */
const told = ({ problem: { field, detail, allowed } }) => `${[field, detail].filter(Boolean).join(": ")}${allowed ? `; allowed: ${allowed}` : ""}.`;

const noSuchRun = (id) => [node("h1", {}, "No such run"),
  node("p", {}, "There is no run ", node("code", {}, id), " in this folder. If it is about to start, it shows up here by itself.")];

/** A refusal in words: where, what is wrong, what was found, what is allowed, and the way back. */
function refusal({ problem }) {
  const { detail, field, value, allowed, file } = problem;
  const where = [file, field].filter(Boolean).join(", ");
  const found = [value && `Found ${value}.`, allowed && `Allowed: ${allowed}.`].filter(Boolean).join(" ");
  return [node("p", {}, [where, detail].filter(Boolean).join(": ")), found ? node("p", { class: "soft small" }, found) : "",
    node("p", {}, node("a", { href: place.href({ metric: "", statistic: "", threshold: "", rows: "", columns: "", ...place.CLOSED }) }, "Show the run with the usual choices"))];
}

// ---- controls ----------------------------------------------------------------------------------------------------

async function fillChoices() {
  const choices = await api.choices();
  const { metrics, statistics, dimensions } = choices;
  fillUse(choices);
  const option = (value, label) => node("option", { value }, label);
  byId("metric").replaceChildren(...metrics.map((one) => option(one.name, one.label)));
  byId("statistic").replaceChildren(option("auto", "P95, else P50"), ...statistics.map((name) => option(name, statisticWords(name))));
  for (const id of ["rows", "columns"]) byId(id).replaceChildren(...dimensions.map((one) => option(one.name, one.name.replaceAll("_", " "))));
  showChoices();
}

function showChoices() {
  const { metric, statistic, threshold, rows, columns } = place.read();
  byId("metric").value = metric;
  byId("rows").value = rows;
  byId("columns").value = columns;
  byId("statistic").value = statistic;
  showUseChoices();
  byId("threshold").value = threshold || DEFAULT_THRESHOLD;
  for (const part of document.querySelectorAll('#threshold, [for="threshold"]')) part.hidden = statistic !== "attainment";
}

/** Choose a side of the heatmap; where the other one has that dimension, the two change places. */
function side(id, other, name) {
  const now = place.read();
  place.go({ [id]: name, ...(now[other] === name && { [other]: now[id] }), ...place.CLOSED });
}

function start() {
  cliffwatch.themeToggle(byId("theme"));
  watchHeatmap();
  watchCell();
  watchCached();
  watchUntried();
  watchKnee();
  watchUse();
  for (const id of ["metric", "statistic", "threshold"]) byId(id).addEventListener("change", (event) => place.go({ [id]: event.target.value }));
  for (const [id, other] of [["rows", "columns"], ["columns", "rows"]]) byId(id).addEventListener("change", (event) => side(id, other, event.target.value));
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("content").focus(); });
  const fold = () => {
    byId("rail").open = !NARROW.matches;
    byId("rail-title").parentElement.tabIndex = NARROW.matches ? 0 : -1;
  };
  NARROW.addEventListener("change", fold);
  fold();
  byId("runs").addEventListener("click", () => { if (NARROW.matches) byId("rail").open = false; });
  addEventListener("hashchange", () => { showChoices(); refresh(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  fillChoices().catch(() => {}).finally(refresh);
}

start();
