/* The API, as functions. The browser's cache and the service's ETags make an unchanged answer cost a 304. */

export class ApiError extends Error {
  constructor(problem) {
    super(problem.detail);
    Object.assign(this, { status: problem.status, title: problem.title, problem });
  }
}

/** Answer of `path`. Throws ApiError for a refusal, TypeError where the service cannot be reached. */
async function get(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch(query ? `${path}?${query}` : path, { cache: "no-cache", signal: AbortSignal.timeout(30_000) });
  if (response.ok) return response.json();
  throw new ApiError(await response.json().catch(() => ({ status: response.status, title: response.statusText, detail: `HTTP ${response.status}` })));
}

const run = (id, part) => `/v1/runs/${encodeURIComponent(id)}${part}`;

export const runs = () => get("/v1/runs");
export const detail = (id) => get(run(id, ""));
export const attainment = (id) => get(run(id, "/attainment"));
export const heatmap = (id, asked) => get(run(id, "/heatmap"), asked);
export const heatmaps = (id, asked) => get(run(id, "/heatmaps"), asked);
export const findings = (id, asked) => get(run(id, "/findings"), asked);
export const knees = (id, asked) => get(run(id, "/knees"), asked);
export const kneeMoves = (id, asked) => get(run(id, "/knees/moves"), asked);
export const use = (id, asked) => get(run(id, "/surface/use"), asked);
export const untried = (id, asked) => get(run(id, "/surface/at"), asked);
export const cell = (id, asked) => get(run(id, "/heatmap/cell"), asked);
export const timeline = (id, metric) => get(run(id, "/timeline"), { metric });
export const engine = (id) => get(run(id, "/engine"));
export const outcomes = (id) => get(run(id, "/outcomes"));

export const slos = () => get("/v1/slos");
export const slo = (name) => get(`/v1/slos/${encodeURIComponent(name)}`);
export const history = (name, span_s) => get(`/v1/slos/${encodeURIComponent(name)}/history`, { span_s });
export const alerts = () => get("/v1/alerts");
export const choices = () => get("/v1/metrics");
