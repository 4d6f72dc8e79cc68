// Every quantized tensor over time, as colours; and the history of one tensor.
import { el, style, short, percent, csvCell, save } from "./dom.js";
import { get } from "./api.js";
import { Plot } from "./plot.js";
import { mapSvg } from "./svg.js";

// bad: the end of the range that shows a problem, which a cell shows where a bucket has several values. least: of the scale of colours, so
// that rounding errors do not look like differences. from: where that scale begins. map: the value that is shown, of a stored one and its
// tensor; falls: a larger one for a smaller stored one.
const measures = {
  headroom: { name: "Headroom", unit: "bits; below 0 values were clipped", bad: "low", least: 1, show: short, map: (v) => Math.round(v * 1000) / 1000 },
  saturated: { name: "Saturated", unit: "fraction of values", bad: "high", log: 1e-7, least: 4, show: percent },
  flushed: { name: "Flushed to zero", unit: "fraction of values", bad: "high", log: 1e-7, least: 4, show: percent },
  sqnr: { name: "SQNR below rounding", unit: "dB below the SQNR that rounding to the tensor's format leaves: 32.2 in E4M3, 26.2 in E5M2; healthy tensors are near 0", bad: "low", from: 0, least: 10, falls: true, show: short,
    map: (v, t) => (t.rounding_sqnr === null ? null : Math.max(Math.round(100 * (t.rounding_sqnr - v)) / 100, 0)), plain: { name: "SQNR", unit: "dB" } },
  nonfinite: { name: "Not finite", unit: "values", bad: "high", log: 1, least: 1, show: short },
  spread: { name: "Spread of block scales", unit: "octaves: standard deviation of log2 of the scales of a tensor's blocks or rows", bad: "high", from: 0, least: 1, show: short },
  lossy: { name: "Blocks with lost values", unit: "fraction of blocks with a clipped or flushed value", bad: "high", log: 1e-7, least: 4, show: percent },
  scale: { name: "Scale", unit: "log2", bad: "low", log: 1e-38, least: 4, show: short },
  amax: { name: "Maximum", unit: "log2", bad: "high", log: 1e-38, least: 4, show: short },
};
const clipped = -0.001;  // bits: below it more than a rounding error was clipped
const scroll_bar = 20, least_width = 280, label_width = 190, axis_height = 18, dark_to_light = [[48, 18, 90], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

export function color(t) {
  const at = Math.min(Math.max(t, 0), 1) * (dark_to_light.length - 1), i = Math.min(Math.floor(at), dark_to_light.length - 2), f = at - i;
  return "rgb(" + dark_to_light[i].map((c, k) => Math.round(c + f * (dark_to_light[i + 1][k] - c))).join() + ")";
}

export class Heat {
  constructor(app) {
    Object.assign(this, { app, data: null, measure: "sqnr", operand: "", cell: null });
    const choice = (name, entries, work) => el("label", {}, name + " ", el("select", { onchange: (e) => work(e.target.value) },
      entries.map(([value, text]) => el("option", { value, selected: value === this.measure }, text))));
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "Heat map of tensors over steps. Arrow keys move, Enter opens a tensor.",
      onmousemove: (e) => this.point(e), onmouseleave: () => this.show(null), onclick: () => this.open(), onkeydown: (e) => this.key(e) });
    this.keyBar = el("canvas", { width: 160, height: 10 });
    this.low = el("span"), this.high = el("span"), this.meaning = el("p", { class: "soft" });
    this.readout = el("div", { class: "readout", "aria-live": "polite" });
    this.cursor = el("div", { class: "cursor", hidden: true });
    this.frame = el("div", { class: "heat" }, this.canvas, this.cursor);
    this.detail = el("section");
    this.node = el("div", {}, el("div", { class: "tools" },
      choice("Measure", Object.entries(measures).map(([k, m]) => [k, m.name]), (v) => (this.measure = v, this.load())),
      choice("Operand", [["", "all"], ["x", "x: activations"], ["w", "w: weights"], ["dy", "dy: gradients"], ["saved", "saved: activations for backward"], ["q", "q: queries"], ["k", "k: keys"], ["v", "v: values"], ["p", "p: probabilities"], ["o", "o: attention's output"], ["do", "do: gradients of o"], ["dp", "dp: gradients of scores"], ["dq", "dq: gradients of queries"], ["dk", "dk: gradients of keys"], ["dv", "dv: gradients of values"]], (v) => (this.operand = v, this.draw())),
      el("span", { class: "key" }, this.low, this.keyBar, this.high),
      el("button", { type: "button", onclick: () => this.saveCsv() }, "CSV"), el("button", { type: "button", onclick: () => this.canvas.toBlob((b) => save(this.measure + ".png", b)) }, "PNG"),
      el("button", { type: "button", onclick: () => this.saveSvg() }, "SVG")),
      this.meaning, this.frame, this.readout, this.detail);
  }

  async load() {
    const run = this.app.run, measure = this.measure;
    const data = await get(`/api/runs/${run}/heat?measure=${measure}&columns=200`);
    if (run !== this.app.run || measure !== this.measure) return;
    this.data = { ...data, run };
    this.draw();
  }
  update() {
    if (this.data?.run === this.app.run) return this.draw();
    this.data = this.rows = null;
    this.canvas.width = 0;
    this.readout.textContent = "";
    this.show(null);
    if (this.opened !== this.app.run) this.detail.replaceChildren();
    if (this.loading === this.app.run) return;
    this.loading = this.app.run;
    this.load().catch((e) => this.app.fail(e)).finally(() => (this.loading = null));
  }

  // The value that a cell shows, as a position on the scale of colours.
  value(tensor, column) {
    const m = measures[this.measure], v = this.data[m.bad][tensor][column];
    return v === null || !m.map ? v : m.map(v, this.app.summary.tensors[tensor]);
  }
  brightIsWorse() {
    const m = measures[this.measure];
    return (m.bad === "high") !== Boolean(m.falls);
  }
  position(v) {
    const m = measures[this.measure];
    return m.log ? Math.log2(Math.max(v, m.log)) : v;
  }

  draw() {
    const { data } = this, tensors = this.app.summary?.tensors ?? [];
    if (!data) return;
    this.rows = tensors.map((_, i) => i).filter((i) => !this.operand || tensors[i].operand === this.operand);
    const columns = data.first.length, pixels = window.devicePixelRatio || 1;
    if (this.rows.length === 0 || columns === 0) {
      this.readout.textContent = tensors.length === 0 ? "This run has no quantized tensors." : "No values yet.";
      this.canvas.width = this.canvas.height = 0;
      return;
    }
    const width = Math.max(this.frame.clientWidth - scroll_bar, least_width), height = this.rows.length <= 120 ? 14 : this.rows.length <= 400 ? 8 : 5;
    const labels = width < 560 ? 110 : label_width, cell = (width - labels) / columns;
    Object.assign(this, { height, labels, cellWidth: cell, columns });
    this.canvas.width = width * pixels, this.canvas.height = (this.rows.length * height + axis_height) * pixels;
    this.canvas.style.width = width + "px", this.canvas.style.height = this.rows.length * height + axis_height + "px";
    const g = this.canvas.getContext("2d");
    g.scale(pixels, pixels);
    const all = this.rows.flatMap((t) => data.first.map((_, c) => this.value(t, c))).filter((v) => v !== null).map((v) => this.position(v)).sort((a, b) => a - b);
    // The ends of the scale leave out a share of 1 in 200, so that one outlier does not hide the rest.
    const cut = Math.floor(all.length / 200), { least, from } = measures[this.measure];
    let low = from ?? all[cut] ?? 0, high = all[all.length - 1 - cut] ?? 1;
    if (from !== undefined) high = Math.max(high, from + least);
    else if (high - low < least) low = (low + high - least) / 2, high = low + least;
    this.range = { low, high };
    this.rows.forEach((t, r) => {
      for (let c = 0; c < columns; ++c) {
        const v = this.value(t, c);
        g.fillStyle = this.colorOf(t, c) ?? style("--panel");
        const x = Math.round(labels + c * cell), wide = Math.round(labels + (c + 1) * cell) - x;
        g.fillRect(x, r * height, wide, height);
        if (v !== null && this.measure === "headroom" && v < clipped) g.fillStyle = "#ff2d00", g.fillRect(x, r * height, wide, 2);
      }
    });
    this.write(g, tensors, width);
    this.showKey(low, high);
  }

  // Null where there is no value.
  colorOf(t, c) {
    const v = this.value(t, c);
    return v === null ? null : color((this.position(v) - this.range.low) / (this.range.high - this.range.low));
  }

  write(g, tensors, width) {
    g.fillStyle = style("--soft"), g.textBaseline = "middle";
    g.font = Math.min(this.height - 2, 11) + "px sans-serif";
    const every = this.height >= 11 ? 1 : Math.ceil(12 / this.height);
    if (every > 1) g.font = "10px sans-serif";
    this.rows.forEach((t, r) => {
      if (r % every === 0) g.fillText(this.label(tensors[t]), 4, (r + 0.5) * this.height, this.labels - 8);
    });
    g.font = "11px sans-serif";
    const y = this.rows.length * this.height + axis_height / 2;
    g.fillText("step " + this.data.first[0], this.labels, y);
    g.textAlign = "right";
    g.fillText(String(this.data.last[this.columns - 1]), width - 4, y);
    g.textAlign = "left";
  }
  label(t) {
    return t.path.replace(/^layers\./, "") + " " + t.operand;
  }

  showKey(low, high) {
    const m = measures[this.measure], g = this.keyBar.getContext("2d"), back = (p) => (m.log ? 2 ** p : p);
    for (let i = 0; i < 160; ++i) g.fillStyle = color(i / 159), g.fillRect(i, 0, 1, 10);
    this.low.textContent = m.show(back(low)), this.high.textContent = m.show(back(high));
    this.meaning.textContent = (m.unit === "log2" ? "logarithmic" : m.unit) + "; " + (this.brightIsWorse() ? "brighter" : "darker") + " is worse. Click a cell for the tensor's history.";
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const r = Math.floor((event.clientY - box.top) / this.height), c = Math.floor((event.clientX - box.left - this.labels) / this.cellWidth);
    this.show(r >= 0 && r < (this.rows?.length ?? 0) ? { r, c: Math.min(Math.max(c, 0), this.columns - 1) } : null);
  }
  key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }, move = moves[event.key];
    if (event.key === "Enter") this.open();
    if (!move || !this.rows) return;
    event.preventDefault();
    const { r, c } = this.cell ?? { r: -1, c: this.columns - 1 }, clamp = (x, most) => Math.min(Math.max(x, 0), most);
    this.show({ r: clamp(r + move[0], this.rows.length - 1), c: clamp(c + move[1], this.columns - 1) });
  }
  show(cell) {
    this.cell = cell;
    this.cursor.hidden = !cell;
    if (!cell) return;
    const t = this.rows[cell.r], q = this.app.summary.tensors[t], m = measures[this.measure], map = (v) => (v === null || !m.map ? v : m.map(v, q));
    const [low, high] = [map(this.data.low[t][cell.c]), map(this.data.high[t][cell.c])].sort((a, b) => a - b);
    Object.assign(this.cursor.style, { left: this.labels + cell.c * this.cellWidth - 1 + "px", top: cell.r * this.height - 1 + "px",
      width: Math.max(this.cellWidth, 4) + 1 + "px", height: this.height + 1 + "px" });
    const steps = this.data.first[cell.c] === this.data.last[cell.c] ? "step " + this.data.first[cell.c] : `steps ${this.data.first[cell.c]} to ${this.data.last[cell.c]}`;
    this.readout.textContent = `${q.path} ${q.operand} (${q.format}, ${q.block}), ${steps}: ${m.name.toLowerCase()} ` +
      (low === high ? m.show(low) : m.show(low) + " to " + m.show(high)) + (m.plain && this.data.low[t][cell.c] !== null ? ` dB, ${m.plain.name} ${short(this.data.low[t][cell.c])} dB` : "");
  }

  open() {
    if (this.cell) this.openTensor(this.rows[this.cell.r]).catch((e) => this.app.fail(e));
  }
  async openTensor(tensor) {
    this.opened = this.app.run;
    const t = await get(`/api/runs/${this.app.run}/tensor?tensor=${tensor}`), grid = el("div", { class: "grid" });
    this.detail.replaceChildren(el("h2", {}, `${t.path} ${t.operand}, ${t.format}, one scale per ${t.block}`), grid);
    // All plots are on the page before the first one is drawn, since a plot takes the size that it has there.
    const plots = Object.entries(measures).map(([name, m]) => {
      const { name: title, unit } = m.plain ?? m, floor = this.app.summary.tensors[tensor].rounding_sqnr;
      const plot = new Plot({ title, unit: unit === "log2" ? "logarithmic" : m.plain && floor !== null ? `${unit}; rounding alone gives ${short(floor, 3)}` : unit, logarithmic: unit === "log2" });
      grid.append(plot.node);
      return () => plot.update([{ label: name, color: 0, curve: t.curves[name], map: m.plain ? undefined : m.map }]);
    });
    for (const draw of plots) draw();
    this.detail.scrollIntoView({ behavior: "smooth" });
  }

  saveSvg() {
    if (!this.rows?.length) return;
    const tensors = this.app.summary.tensors, m = measures[this.measure];
    const rows = this.rows.map((t) => ({ label: this.label(tensors[t]), colors: this.data.first.map((_, c) => this.colorOf(t, c)) }));
    const steps = [this.data.first[0], this.data.last[this.columns - 1]], ends = [this.low.textContent, this.high.textContent];
    save(this.measure + ".svg", new Blob([mapSvg(`${this.app.summary.name}: ${m.name} (${m.unit}), ${ends[0]} dark to ${ends[1]} light`, rows, steps,
      { background: style("--bg"), ink: style("--ink"), soft: style("--soft") })], { type: "image/svg+xml" }));
  }
  saveCsv() {
    const lines = ["path,operand,first_step,last_step,low,high"];
    for (const t of this.rows ?? [])
      for (let c = 0; c < this.columns; ++c) {
        const q = this.app.summary.tensors[t];
        lines.push([q.path, q.operand, this.data.first[c], this.data.last[c], this.data.low[t][c], this.data.high[t][c]].map(csvCell).join(","));
      }
    save(this.measure + ".csv", new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  }
}
