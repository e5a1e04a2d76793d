/* Rendering without flicker: build what should be there, then change only what differs. */

const { node } = cliffwatch;
export { node };

export const byId = (id) => document.getElementById(id);

/** Make `live` show `fresh` children, keeping every element that is still right: focus, hover and scroll stay. */
export function show(live, ...fresh) {
  const wanted = fresh.flat().filter((child) => child !== null).map((child) => (child instanceof Node ? child : document.createTextNode(child)));
  wanted.forEach((child, index) => {
    const present = live.childNodes[index];
    if (!present) live.append(child);
    else if (!alike(present, child)) present.replaceWith(child);
    else if (child.nodeType === Node.TEXT_NODE) { if (present.data !== child.data) present.data = child.data; } else patch(present, child);
  });
  while (live.childNodes.length > wanted.length) live.lastChild.remove();
}

const alike = (one, other) => one.nodeName === other.nodeName && (one.dataset?.key ?? "") === (other.dataset?.key ?? "");

/** Attributes that the live element owns: the fresh one knows nothing of where the focus is or what was opened. */
const KEPT = new Set(["tabindex", "open"]);

function patch(live, fresh) {
  if (live.isEqualNode(fresh)) return;
  for (const { name } of [...live.attributes]) if (!fresh.hasAttribute(name) && !KEPT.has(name)) live.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) if (!KEPT.has(name) && live.getAttribute(name) !== value) live.setAttribute(name, value);
  if ("owned" in live.dataset) return; // a chart draws its own content
  show(live, [...fresh.childNodes]);
}

/** A state as icon, word and colour. */
export const badge = (state, text = words(state)) => node("span", { class: "badge", "data-state": state }, text);

const WORDS = { too_few_data: "too few data" };
const words = (state) => WORDS[state] ?? state;
