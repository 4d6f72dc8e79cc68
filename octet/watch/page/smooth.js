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
