/* The objectives: attained share, its interval, its n, and whether that meets the target. */

import { badge, byId, node, show } from "./dom.js";
import { attained, count, goal, interval, seconds, usd } from "./words.js";

export function showAttainment(answer) {
  const box = byId("attainment");
  if (answer.note) return show(box, node("p", { class: "empty" }, answer.note));
  const { objectives } = answer.judgement;
  show(box, summary(answer.judgement), goodput(answer.judgement), node("div", {}, ...objectives.map(row)));
  box.querySelectorAll("[data-owned]").forEach((chart, index) => draw(chart, objectives[index]));
}

const summary = (judgement) => node("div", { class: "bar" },
  node("p", {}, badge(judgement.status), " ", node("span", {}, `${judgement.slo}: ${judgement.reason}.`)),
  judgement.partial ? node("p", { class: "soft small" }, judgement.partial) : "");

function goodput({ goodput: good, price }) {
  const figures = [
    ["Goodput", good.per_s === null ? "–" : `${count(Number(good.per_s.toPrecision(3)))}/s`, "requests that met every objective"],
    ["Good requests", attained(good.ratio), `${count(good.good)} of ${count(good.n)} sent`],
  ];
  if (price) {
    const { usd_per_request: request, usd_per_million_output_tokens: tokens } = price;
    figures.push(["Cost of a request", usd(request), "from the time the run took"], ["Cost of 1M output tokens", usd(tokens), `at ${usd(price.gpu_hour_usd)} a GPU hour`]);
  }
  return node("dl", { class: "figures" }, ...figures.map(([name, value, note]) => node("div", {},
    node("dt", {}, name), node("dd", {}, value), node("dd", { class: "note" }, note))));
}

function row(one) {
  return node("div", { class: "objective", "data-state": one.status, "data-key": one.label },
    node("div", {},
      node("h3", {}, one.label),
      badge(one.status),
      node("p", { class: "small soft" }, counted(one))),
    node("div", {},
      node("div", { "data-owned": true }),
      node("p", { class: "small soft" }, observed(one))));
}

const counted = (one) => `target ${goal(one.target)} · n ${count(one.n)} · ${count(one.bad)} bad`
  + (one.status === "too_few_data" ? ` · ${count(one.needed_n)} needed` : "");

function observed(one) {
  const sure = one.low === null ? "no requests yet" : `95 % interval ${interval(one.low, one.high)}`;
  const quantiles = Object.entries(one.observed).filter(([, q]) => q.value !== null)
    .map(([name, q]) => `${name.toUpperCase()} ${seconds(q.value)}${q.few ? " †" : ""}`);
  return [sure, ...quantiles].join(" · ");
}

const drawn = new WeakMap();

function draw(chart, one) {
  const key = JSON.stringify([one, chart.clientWidth]);
  if (drawn.get(chart) === key) return;
  drawn.set(chart, key);
  cliffwatch.attainment(chart, one);
}
