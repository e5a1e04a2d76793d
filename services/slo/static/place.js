/* Where the reader is, in the address: `#run=ID&metric=itl_s&statistic=p99`. A link shows the same again.
   `row` and `column` are the keys of the cell that is open, `offset` how far its list is turned; `at_*` are of an
   untried point that is asked for, `knee_*` and `against` of the knees and the run they are compared with;
   `hardware`, `model`, `part` and `share` of the use of hardware. */

const DEFAULTS = {
  run: "", metric: "ttft_user_s", statistic: "auto", threshold: "", rows: "input_tokens", columns: "batch", row: "", column: "", offset: "",
  at_tokens: "", at_batch: "1", at_cached: "", at_far: "",
  knee_axis: "auto", knee_of: "", against: "",
  hardware: "", model: "", part: "decode", share: "bandwidth",
};

/** Of no cell. */
export const CLOSED = { row: "", column: "", offset: "" };

export function read() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.entries(DEFAULTS).map(([key, value]) => [key, given.get(key) || value]));
}

export function href(change) {
  const place = { ...read(), ...change };
  const kept = Object.entries(place).filter(([key, value]) => value && value !== DEFAULTS[key]);
  return `#${new URLSearchParams(kept)}`;
}

/** Go there; `replace` leaves no step in the history (for what the page chose by itself). */
export function go(change, { replace = false } = {}) {
  const target = href(change);
  if (target === location.hash) return;
  if (replace) history.replaceState(null, "", target);
  else location.hash = target;
}
