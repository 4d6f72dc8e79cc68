// Two or more runs: curves, differences, configuration and plan.
import { el, short, loss, whole, percent, bytes, table, row, number } from "./dom.js";
import { get } from "./api.js";
import { Plot } from "./plot.js";
import { metricPlot } from "./metrics.js";
import { smooth, smoothingChoice } from "./smooth.js";

const most = 8;

export class Compare {
  constructor(app) {
    Object.assign(this, { app, chosen: [], smoothing: 1, draws: [] });
    this.boxes = el("div", { class: "tools" });
    this.choice = el("section", {}, el("h2", {}, "Compare runs"), el("p", { class: "soft" }, "Choose up to 8. The one that was chosen first is the reference, and the first of each legend."), this.boxes,
      smoothingChoice((n) => ((this.smoothing = n), this.draws.forEach((draw) => draw()))));
    this.result = el("section");
    this.node = el("div", {}, this.choice, this.result);
  }

  update() {
    if (this.chosen.length === 0) this.chosen = this.nearby();
    const boxes = this.app.runs.map((r) => el("label", {}, el("input", { type: "checkbox", checked: this.chosen.includes(r.run),
      onchange: (e) => this.choose(r.run, e.target.checked) }), " " + r.run + " " + r.name));
    this.boxes.replaceChildren(...boxes);
    const key = this.chosen.join();
    if (this.loaded !== key) this.load().catch((e) => this.app.fail(e));
  }

  // The current run, and the one before or after it in the list.
  nearby() {
    const runs = this.app.runs.map((r) => r.run), at = Math.max(runs.indexOf(this.app.run), 0);
    return [runs[at], runs[at + 1] ?? runs[at - 1]].filter((r) => r !== undefined);
  }

  choose(run, on) {
    this.chosen = on ? [...this.chosen, run].slice(-most) : this.chosen.filter((r) => r !== run);
    if (this.node.isConnected) this.update();
  }

  async load() {
    const key = (this.loaded = this.chosen.join());
    if (!key) return this.result.replaceChildren();
    const [both, ...series] = await Promise.all([get("/api/compare?runs=" + key), ...this.chosen.map((r) => get(`/api/runs/${r}/series?points=600`))]);
    if (key === this.loaded) this.show(both, series);
  }

  show(both, series) {
    const names = both.runs.map((r) => r.run + " " + r.name), grid = el("div", { class: "grid" }), plots = [];
    this.result.replaceChildren(grid);
    for (const name of ["loss", "eval_loss", "grad_norm", "tokens_per_second"]) {
      const plot = metricPlot(name, { logarithmic: name === "grad_norm" });
      grid.append(plot.node);
      plots.push(() => plot.update(series.map((s, i) => ({ label: names[i], color: i, curve: smooth(s.curves[name], this.smoothing) }))));
    }
    const gap = new Plot({ title: "Loss against run " + names[0], unit: "relative difference", show: percent });
    grid.append(gap.node);
    plots.push(() => gap.update(both.runs.slice(1).map((r, i) => ({ label: names[i + 1], color: i + 1, curve: r.difference && smooth(line(r.difference), this.smoothing) }))));
    for (const draw of plots) draw();  // a plot takes the size that it has on the page
    this.draws = plots;
    const rows = both.runs.map((r, i) => {
      const d = r.difference, width = d?.half_width;
      return row([names[i], r.condition, number(whole(r.step)), number(loss(r.loss)), number(loss(r.eval_loss)),
        number(i === 0 || !d || d.mean === null ? "–" : percent(d.mean) + (width === null ? "" : " ±" + percent(width))),
        number(short(r.tokens_per_second)), number(bytes(r.memory)), number(whole(r.skipped))]);
    });
    const heads = ["step", "loss", "held-out loss", "loss against the first", "tokens per second", "memory", "skipped"].map((name) => ({ name, number: true }));
    this.result.append(el("section", {}, el("h2", {}, "Results"), table(["run", "state", ...heads], rows),
      el("p", { class: "soft" }, "Differences are means over the last half of the steps that both have, with Student's interval at 95% as if buckets of steps were independent. " +
        "Other seeds vary more: octet compare measures that.")));
    for (const [title, list] of [["Configuration that differs", both.config], ["Precision that differs", both.plan]])
      this.result.append(el("section", {}, el("h2", {}, title), list.length ? table(["key", ...names], list.map((d) => row([el("code", {}, d.key), ...d.values.map((v) => v ?? "–")])))
                                                                            : el("p", { class: "soft" }, "None.")));
  }
}

const line = (d) => ({ first: d.steps, last: d.steps, mean: d.values, low: d.values, high: d.values });
