// The loads of experts: how often the tokens of a step chose each one.
import { el, style, short, whole } from "./dom.js";
import { color } from "./heat.js";
import { Plot } from "./plot.js";

const height = 14, labels = 70, most_octaves = 3, least_width = 280;

export class Experts {
  constructor(app) {
    this.app = app;
    this.entropy = new Plot({ title: "Balance", unit: "lowest entropy of a layer's loads; 1: all experts have equal loads" });
    this.most = new Plot({ title: "Fullest expert", unit: "its load, as a multiple of its layer's mean", zero: true });
    this.head = el("h2"), this.readout = el("div", { class: "readout", "aria-live": "polite" });
    this.canvas = el("canvas", { role: "img", "aria-label": "Loads of experts by layer", onmousemove: (e) => this.point(e), onmouseleave: () => this.tell(null) });
    this.frame = el("div", { class: "heat" }, this.canvas);
    this.map = el("section", {}, this.head, el("p", { class: "soft" }, "Layers by experts: darker than the middle is less than the mean, brighter is more; red has no token."), this.frame, this.readout);
    this.grid = el("div", { class: "grid" }, this.entropy.node, this.most.node);
    this.none = el("p", { class: "soft" }, "This run has no experts, or no event of them yet.");
    this.node = el("div", {}, this.none);
  }

  update() {
    const { summary, series } = this.app, e = summary?.experts;
    if (!e || !series) return this.node.replaceChildren(this.none);
    if (!this.map.isConnected) this.node.replaceChildren(this.grid, this.map);
    this.entropy.update([{ label: "entropy", color: 0, curve: series.curves.expert_entropy }]);
    this.most.update([{ label: "load", color: 1, curve: series.curves.expert_load }]);
    this.head.textContent = `Loads at step ${whole(e.step)}`;
    this.draw(e);
  }

  draw(e) {
    const pixels = window.devicePixelRatio || 1, width = Math.max(this.frame.clientWidth - 20, least_width), cell = (width - labels) / e.experts;
    // Each load as a multiple of its layer's mean; null where no token chose.
    const loads = e.layers.map((_, row) => {
      const counts = e.counts.slice(row * e.experts, (row + 1) * e.experts), mean = counts.reduce((a, b) => a + b, 0) / e.experts;
      return counts.map((n) => (mean > 0 ? n / mean : null));
    });
    Object.assign(this, { cell, shown: e, loads });
    this.canvas.width = width * pixels, this.canvas.height = e.layers.length * height * pixels;
    this.canvas.style.width = width + "px", this.canvas.style.height = e.layers.length * height + "px";
    const g = this.canvas.getContext("2d");
    g.scale(pixels, pixels);
    g.font = "11px sans-serif", g.textBaseline = "middle";
    e.layers.forEach((layer, row) => {
      g.fillStyle = style("--soft"), g.fillText("layer " + layer, 4, (row + 0.5) * height, labels - 8);
      for (let i = 0; i < e.experts; ++i) {
        const load = loads[row][i], x = Math.round(labels + i * cell);
        g.fillStyle = load === null ? style("--panel") : load === 0 ? "#ff2d00" : color((Math.log2(load) / most_octaves + 1) / 2);
        g.fillRect(x, row * height, Math.round(labels + (i + 1) * cell) - x, height - 1);
      }
    });
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect(), row = Math.floor((event.clientY - box.top) / height), i = Math.floor((event.clientX - box.left - labels) / this.cell);
    const e = this.shown;
    this.tell(e && i >= 0 && i < e.experts && row >= 0 && row < e.layers.length ? { row, i } : null);
  }
  tell(at) {
    const e = this.shown;
    this.readout.textContent = at ? `layer ${e.layers[at.row]}, expert ${at.i}: ${whole(e.counts[at.row * e.experts + at.i])} choices, ${short(this.loads[at.row][at.i], 3)} times the mean` : "";
  }
}
