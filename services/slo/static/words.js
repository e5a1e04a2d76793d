/* How the page says times and amounts. */

const { attained, count, interval, seconds, share } = cliffwatch.format;
export { attained, count, interval, seconds, share };

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

export const clock = (unix_s) => CLOCK.format(new Date(unix_s * 1000));
export const date = (unix_s) => (unix_s === null ? "–" : DATE.format(new Date(unix_s * 1000)));

/** A length of time in whole steps: `45 s`, `12 min`, `3 h`, `5 d`. */
export function span(length_s) {
  for (const [limit, unit_s, unit] of [[120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"]]) {
    if (length_s < limit) return `${Math.max(0, Math.floor(length_s / unit_s))} ${unit}`;
  }
  return `${Math.floor(length_s / 86400)} d`;
}

/** A value or threshold of a check, in its unit. */
export const checked = (value, unit) => cliffwatch.byUnit[unit](value);

/** The client's own error of a figure: `+0.1 ms, P99 0.7 ms (n 1,000)`. */
export const bias = (error) => `${error.p50_s < 0 ? "-" : "+"}${seconds(Math.abs(error.p50_s))}, P99 ${seconds(error.p99_s)} (n ${count(error.n)})`;

/** A target as it was written: 0.95 is `95 %`. */
export const goal = (target) => `${Number((target * 100).toFixed(6))} %`;
/** A statistic by its name: `p95` is `P95`. */
export const statisticWords = (name) => (/^p\d/.test(name) ? name.toUpperCase() : name);
export const usd = (amount) => (amount === null ? "–" : `$${Number(amount.toPrecision(3))}`);
export const ago = (unix_s) => `${span(Date.now() / 1000 - unix_s)} ago`;
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
