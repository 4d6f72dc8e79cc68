// The ranks of a run: which one is slow, and how much of a step is spent in collectives.
import { el, short, whole, percent, bytes, table, row, number } from "./dom.js";
import { metricPlot } from "./metrics.js";

const most_tensors = 20;

export class Ranks {
  constructor(app) {
    this.app = app;
    this.exposed = metricPlot("exposed", { show: percent });
    this.busy = metricPlot("slowest_busy");
    this.mu = metricPlot("mu", { logarithmic: true });
    this.lost = metricPlot("overflow", { title: "Shared scales: overflow and underflow", show: percent, zero: true });
    this.grid = el("div", { class: "grid" });
    this.list = el("section");
    this.gpus = el("section");
    this.scales = el("section");
    this.node = el("div", {}, this.grid, this.list, this.gpus, this.scales);
  }

  // A row per rank, also where there is one.
  fillGpus(g) {
    if (!g) return this.gpus.replaceChildren();
    const heads = ["rank", "busy", "power", "temperature", "SM clock", "memory in use"].map((name) => ({ name, number: true }));
    const unit = (x, name) => (x === null ? "–" : short(x) + " " + name);
    this.gpus.replaceChildren(el("h2", {}, `GPUs at step ${whole(g.step)}`), table([...heads, "lower clock because of"], g.power.map((_, i) =>
      row([number(String(i)), number(percent(g.utilization[i])), number(unit(g.power[i], "W")), number(unit(g.temperature[i], "°C")), number(unit(g.sm_clock[i], "MHz")), number(bytes(g.memory_used[i])), g.reasons[i] || "–"])), "stack"));
  }

  // Gradients that travel in 8 bits with one scale per tensor.
  fillScales(shared, curves) {
    for (const plot of [this.mu, this.lost])
      if (shared && !plot.node.isConnected) this.grid.append(plot.node);
      else if (!shared) plot.node.remove();
    if (!shared) return this.scales.replaceChildren();
    this.mu.update([{ label: "mu", color: 2, curve: curves.mu }]);
    this.lost.update([{ label: "overflow", color: 1, curve: curves.overflow }, { label: "underflow", color: 3, curve: curves.underflow }]);
    const worst = [...shared.tensors].sort((a, b) => b.overflow - a.overflow || a.mu - b.mu || b.underflow - a.underflow).slice(0, most_tensors);
    this.scales.replaceChildren(el("h2", {}, `Shared scales at step ${whole(shared.step)}, ` + (shared.tensors.length > most_tensors ? `the worst ${most_tensors} of ${whole(shared.tensors.length)} tensors` : `${whole(shared.tensors.length)} tensors`)),
      table(["tensor", { name: "mu", number: true }, { name: "overflow", number: true }, { name: "underflow", number: true }],
        worst.map((t) => row([el("code", {}, t.tensor), number(short(t.mu)), number(percent(t.overflow), t.overflow > 0), number(percent(t.underflow))]))));
  }

  // A plot is on the page where the run has its curve: the host of GPUs does not see waits.
  draw(plot, line) {
    if (!line.curve) return plot.node.remove();
    if (!plot.node.isConnected) this.grid.append(plot.node);
    plot.update([line]);
  }

  update() {
    const { summary, series } = this.app;
    if (!summary || !series) return;
    this.draw(this.exposed, { label: "exposed", color: 0, curve: series.curves.exposed });
    this.draw(this.busy, { label: "busy", color: 1, curve: series.curves.slowest_busy });
    this.fillScales(summary.shared_scales, series.curves);
    this.fillGpus(summary.gpus);
    const r = summary.ranks;
    if (!r) {
      this.list.replaceChildren(el("p", { class: "soft" }, summary.ranks_started > 1 ? "No event of ranks yet." : "This run has one rank."));
      return;
    }
    const events = r.slowest_counts.reduce((a, b) => a + b, 0);
    this.list.replaceChildren(el("h2", {}, `Step ${whole(r.step)}: ${bytes(r.sent_bytes)} sent per rank, ${percent(r.exposed)} of the step in collectives`),
      table([{ name: "rank", number: true }, { name: "seconds", number: true }, { name: "in collectives", number: true }, { name: "slowest, of " + whole(events) + " events", number: true }],
        r.seconds.map((s, i) => row([number(String(i), i === r.slowest), number(short(s)), number(short(r.waited[i])), number(whole(r.slowest_counts[i] ?? 0))])), "narrow"));
  }
}
