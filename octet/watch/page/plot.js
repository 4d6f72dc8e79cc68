// A curve over steps with the band of its buckets, its value under the pointer, and files of it.
import { el, style, short, bytes, csvCell, save } from "./dom.js";
import { plotSvg, svgToPng } from "./svg.js";

// The library's legend sets styles as attributes, which the page's content security policy refuses; the page has its own legend.
if (typeof Dygraph !== "undefined") Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

export class Plot {
  // series: [{label, color: 0..7, curve, map?}], where a curve has the lists of the API; map changes its values.
  constructor({ title, unit = "", logarithmic = false, zero = false, show = short, mark = null, small = false }) {
    Object.assign(this, { title, unit, logarithmic, zero, show, small, marks: mark === null ? [] : [mark], series: [], graph: null });
    this.area = el("div", { class: small ? "plot small" : "plot" });
    this.readout = el("div", { class: "readout" });
    this.legend = el("div", { class: "legend" });
    const button = (name, work) => el("button", { type: "button", onclick: work, title: name + " file of this plot" }, name);
    this.node = el("figure", {}, el("figcaption", {}, el("h3", {}, title), el("span", { class: "unit" }, unit),
      button("CSV", () => this.saveCsv()), button("PNG", () => this.savePng()), button("SVG", () => this.saveSvg())),
      this.area, this.readout, this.legend);
    // A plot that comes beside another one makes it narrower.
    new ResizeObserver(() => this.graph?.resize()).observe(this.area);
  }

  update(series) {
    this.series = series.filter((s) => s.curve && s.curve.last.length > 0);
    this.legend.replaceChildren(...(this.series.length < 2 ? [] : this.series.map((s) => {
      const mark = el("i");
      mark.style.background = this.color(s);
      return el("span", {}, mark, s.label);
    })));
    if (typeof Dygraph === "undefined") {
      this.area.textContent = "No curves: this octet was built without dygraphs (Debian package libjs-dygraphs).";
      return;
    }
    const rows = this.rows();
    if (rows.length === 0) {
      this.area.textContent = "no values yet";
      this.graph = null;
      return;
    }
    const labels = ["step", ...this.series.map((_, i) => "s" + i)], colors = this.series.map((s) => this.color(s));
    if (this.graph && this.labels === labels.join()) {
      this.graph.updateOptions({ file: rows, colors });
      return;
    }
    this.labels = labels.join();
    this.area.textContent = "";
    this.graph = new Dygraph(this.area, rows, {
      labels, colors, customBars: true, fillAlpha: 0.2, strokeWidth: 1.5, legend: "never", connectSeparatedPoints: true,
      logscale: this.logarithmic, includeZero: this.zero, yRangePad: this.logarithmic ? 6 : null, gridLineColor: "rgba(128,128,128,.25)", axisLineColor: "rgba(128,128,128,.6)", highlightCircleSize: 3,
      axes: { y: { axisLabelFormatter: (v) => this.show(v, 3), axisLabelWidth: 62, pixelsPerLabel: this.small ? 20 : 30, labelsKMG2: this.show === bytes }, x: { axisLabelFormatter: (v) => short(v, 6), pixelsPerLabel: 70 } },
      underlayCallback: (g, area, graph) => this.drawMarks(g, area, graph),
      highlightCallback: (_, step) => this.point(step),
      unhighlightCallback: () => (this.readout.textContent = ""),
      drawPoints: rows.length === 1, pointSize: 3,
    });
  }

  // A vertical line at the step of each incident.
  drawMarks(g, area, graph) {
    g.fillStyle = style("--warn");
    for (const step of this.marks) g.fillRect(Math.round(graph.toDomXCoord(step)) - 1, area.y, 2, area.h);
  }

  color(s) {
    return style("--s" + (s.color % 8));
  }

  points(s) {
    const { last, mean, low, high } = s.curve, map = s.map ?? ((v) => v), at = (list, i) => (list[i] === null ? null : map(list[i], i));
    return last.map((step, i) => [step, at(low, i), mean ? at(mean, i) : at(high, i), at(high, i)]);
  }

  rows() {
    const steps = new Map();
    this.series.forEach((s, k) => {
      for (const [step, low, middle, high] of this.points(s)) {
        if (!steps.has(step)) steps.set(step, [step, ...this.series.map(() => [null, null, null])]);
        if (middle !== null && !(this.logarithmic && middle <= 0)) steps.get(step)[k + 1] = [this.logarithmic && low <= 0 ? middle : low, middle, high];
      }
    });
    return [...steps.values()].sort((a, b) => a[0] - b[0]);
  }

  point(step) {
    const parts = this.series.map((s) => {
      const i = s.curve.last.indexOf(step);
      if (i < 0) return null;
      const [, low, middle, high] = this.points(s)[i], range = low !== high ? " (" + this.show(low) + " to " + this.show(high) + ")" : "";
      const bad = s.curve.nonfinite?.[i] ? ", " + s.curve.nonfinite[i] + " not finite" : "";
      return (this.series.length > 1 ? s.label + " " : "") + this.show(middle) + range + bad;
    });
    this.readout.textContent = "step " + step + ": " + parts.filter((p) => p).join("; ");
  }

  file() {
    return plotSvg(this.title, this.unit, this.series.map((s) => ({ label: s.label, color: this.color(s), points: this.points(s) })), this.logarithmic,
      { background: style("--bg"), ink: style("--ink"), soft: style("--soft"), line: style("--line") });
  }
  saveSvg() {
    save(this.title + ".svg", new Blob([this.file()], { type: "image/svg+xml" }));
  }
  async savePng() {
    save(this.title + ".png", await svgToPng(this.file()));
  }
  saveCsv() {
    const lines = [["series", "first_step", "last_step", "low", "mean", "high"].join(",")];
    for (const s of this.series)
      this.points(s).forEach((p, i) => lines.push([s.label, s.curve.first[i], p[0], p[1], p[2], p[3]].map(csvCell).join(",")));
    save(this.title + ".csv", new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  }
}
