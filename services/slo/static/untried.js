/* What an untried length and batch would cost: a form, and the answer with its interval or why there is none. */

import { byId, node, show } from "./dom.js";
import * as place from "./place.js";
import { seconds, statisticWords } from "./words.js";

const FIELDS = ["tokens", "batch", "cached"];

/** `answer` is null while nothing was asked. */
export function showUntried(answer) {
  fill();
  show(byId("untried-answer"), ...(answer ? told(answer) : []));
}

/** The fields say what was asked; one that is being typed into is left alone. */
function fill() {
  const here = place.read();
  for (const name of FIELDS) {
    const field = byId(`untried-${name}`);
    if (document.activeElement !== field) field.value = here[`at_${name}`];
  }
}

function told(answer) {
  const [, ...basis] = answer.says;
  return [
    node("p", { class: "finding" }, `${statisticWords(answer.statistic)} ${seconds(answer.value_s)}, ${seconds(answer.low_s)} to ${seconds(answer.high_s)} (${Math.round(answer.coverage * 100)} % interval)`),
    node("p", { class: "small soft" }, `${answer.metric}, cache ${answer.cache}; ${basis.join("; ")}.`),
  ];
}

/** Why there is no answer, in place of one. */
export function refuseUntried({ problem }) {
  const outside = /outside what was measured/.test(problem.detail);
  fill();
  const what = outside ? `${place.read().at_tokens} x ${place.read().at_batch}` : `${problem.field}:`;
  show(byId("untried-answer"),
    node("p", {}, `No answer: ${what} ${problem.detail}.`),
    problem.allowed ? node("p", { class: "small soft" }, `${problem.allowed[0].toUpperCase()}${problem.allowed.slice(1)}.`) : null,
    outside && !place.read().at_far ? node("p", { class: "small" }, node("a", { href: place.href({ at_far: "yes" }) }, "Extrapolate all the same")) : null);
}

/** Listen once: what is asked stands in the address, so that a link asks the same again. */
export function watchUntried() {
  byId("untried").addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = Object.fromEntries(FIELDS.map((name) => [`at_${name}`, byId(`untried-${name}`).value]));
    place.go({ ...asked, at_far: "" });
  });
}
