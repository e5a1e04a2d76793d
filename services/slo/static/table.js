/* Tables as all parts of the page have them. */

import { node } from "./dom.js";

/**
 * A table with its caption. A head that starts with `>` is a column of numbers, one with `~` is only read out;
 * `rows` are `tr` elements.
 */
export function table(caption, heads, rows) {
  return node("div", { class: "scroll", "data-key": caption, tabindex: "0", role: "region", "aria-label": caption },
    node("table", { class: "table" }, node("caption", {}, caption),
      node("thead", {}, node("tr", {}, ...heads.map(head))), node("tbody", {}, ...rows)));
}

function head(name) {
  const text = name.replace(/^[>~]/, "");
  return node("th", { scope: "col", class: name.startsWith(">") ? "number" : null },
    name.startsWith("~") ? node("span", { class: "visually-hidden" }, text) : text);
}
