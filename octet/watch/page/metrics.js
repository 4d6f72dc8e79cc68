// The words of metrics, which the server has from the program's one table.
import { get } from "./api.js";
import { Plot } from "./plot.js";

const words = new Map();

export async function loadMetrics() {
  for (const m of (await get("/api/metrics")).metrics) words.set(m.name, m);
}

// A plot of one metric; `more` has further options, or words of its own.
export function metricPlot(name, more = {}) {
  const { title, unit } = words.get(name) ?? { title: name, unit: "" };
  return new Plot({ title, unit: more.logarithmic ? unit + ", logarithmic" : unit, ...more });
}
