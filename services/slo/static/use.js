/* How much of the hardware each length and batch used: a heatmap of shares, once hardware and model are chosen. */

import { byId, node, show } from "./dom.js";
import * as place from "./place.js";

const CHOICES = ["hardware", "model", "part", "share"];
let drawn = "";

/** `answer` is null while hardware or model are not chosen. */
export function showUse(answer) {
  if (!answer) return refuseUse("Choose the hardware and the model that were measured.");
  const { values, lows, highs } = answer[place.read().share];
  const data = {
    caption: `${place.read().share === "bandwidth" ? "Memory bandwidth" : "Arithmetic (MFU)"} used, ${answer.part}, by ${answer.metric}, cache ${answer.cache}`,
    corner: "input ↓ batch →", rows: answer.rows, columns: answer.columns, unit: "share", empty: "Output lengths are not known.",
    cells: values.map((row, r) => row.map((value, c) => ({ value, low: lows[r][c], high: highs[r][c], n: answer.counts[r][c], few: false }))),
  };
  if (JSON.stringify(data) !== drawn) cliffwatch.heatmap(byId("use"), data);
  drawn = JSON.stringify(data);
  show(byId("use-words"), `${answer.says.join("; ")}.`);
}

export function refuseUse(text) {
  drawn = "";
  show(byId("use-words"));
  cliffwatch.empty(byId("use"), text);
}

/** The choices, as the API has them. */
export function fillUse({ hardware, models, parts }) {
  const options = (names, words = (name) => name) => names.map((name) => node("option", { value: name }, words(name)));
  byId("use-hardware").replaceChildren(...options(["", ...hardware], (name) => name || "choose"));
  byId("use-model").replaceChildren(...options(["", ...models], (name) => name || "choose"));
  byId("use-part").replaceChildren(...options(parts));
}

export function showUseChoices() {
  for (const name of CHOICES) byId(`use-${name}`).value = place.read()[name];
}

/** Listen once; what is chosen stands in the address. */
export function watchUse() {
  for (const name of CHOICES) byId(`use-${name}`).addEventListener("change", (event) => place.go({ [name]: event.target.value }));
}
