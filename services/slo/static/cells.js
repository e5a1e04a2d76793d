/* The cells of a heatmap as the charts take them. */

export const asCells = (answer) => answer.values.map((row, r) => row.map((value, c) => (
  { value, n: answer.counts[r][c], few: answer.few[r][c], low: answer.lows[r][c], high: answer.highs[r][c] })));
