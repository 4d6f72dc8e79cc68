import { el } from "./dom.js";

// A curve whose means are averaged over about `n` neighbouring buckets (an exponential mean without a bias to the first value).
export function smooth(curve, n) {
  if (!curve || !curve.mean || n <= 1) return curve;
  const keep = 1 - 1 / n;
  let sum = 0, weight = 0;
  const mean = curve.mean.map((v) => {
    if (v === null) return null;
    sum = keep * sum + v, weight = keep * weight + 1;
    return sum / weight;
  });
  return { ...curve, mean, low: mean, high: mean };
}

// The choice of n; work(n) draws again.
export const smoothingChoice = (work) => el("label", {}, "Smoothing, in buckets ", el("select", { onchange: (e) => work(Number(e.target.value)) },
  [[1, "none"], [4, "4"], [16, "16"], [64, "64"]].map(([n, text]) => el("option", { value: n }, text))));
