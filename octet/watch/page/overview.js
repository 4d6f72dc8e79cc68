// The state of a run: its last step, its curves, its memory and its last incidents.
import { el, short, loss, prefixed, whole, percent, bytes, duration, table, row, number, save } from "./dom.js";
import { has_token, file } from "./api.js";
import { smooth, smoothingChoice } from "./smooth.js";
import { metricPlot } from "./metrics.js";

const most_memory = (categories) => Math.max(1, ...categories.map((c) => c.bytes));

export class Overview {
  constructor(app) {
    Object.assign(this, { app, smoothing: 1 });
    const plot = (name, more = {}) => [name, metricPlot(name, more)];
    this.plots = new Map([
      plot("loss", { unit: "nats per token, or per pair of answers; vertical lines: incidents" }),
      plot("loss_z", { small: true }),
      plot("grad_norm", { unit: "before clipping, logarithmic", logarithmic: true }),
      plot("grad_norm_z", { small: true }),
      plot("param_norm"),
      plot("lr"),
      plot("tokens_per_second", { zero: true }),
      plot("memory", { show: bytes, zero: true }),
      plot("disk_free", { title: "Free memory and disk", unit: "bytes", show: bytes, zero: true }),
      plot("seconds", { zero: true }),
    ]);
    // Of runs that have them.
    this.rare = new Map([
      plot("loss_scale", { logarithmic: true }), plot("mtp_loss"), plot("reward_margin"), plot("reward_accuracy", { zero: true }),
      plot("gpu_utilization", { show: percent, zero: true }), plot("gpu_power", { zero: true }),
      plot("gpu_temperature"), plot("gpu_clock"), plot("gpu_memory", { show: bytes, zero: true }),
    ]);
    this.tiles = el("div", { class: "tiles" });
    this.grid = el("div", { class: "grid" }, [...this.plots.values()].map((p) => p.node));
    this.incidents = el("section");
    this.memory = el("section");
    this.facts = el("section");
    this.node = el("div", {}, this.tiles, el("div", { class: "tools" }, smoothingChoice((n) => ((this.smoothing = n), this.update()))), this.grid, this.incidents, this.memory, this.facts);
  }

  update() {
    const { summary, series } = this.app;
    if (!summary || !series) return;
    this.fillTiles(summary);
    const c = Object.fromEntries(Object.entries(series.curves).map(([name, curve]) => [name, smooth(curve, this.smoothing)]));
    for (const [name, plot] of this.plots) plot.update([{ label: name, color: 0, curve: c[name] }]);
    this.plots.get("loss").marks = [...new Set((this.app.incidents?.incidents ?? []).map((i) => i.step))];
    this.plots.get("loss").update([
      { label: "training", color: 0, curve: c.loss }, { label: "held-out", color: 1, curve: c.eval_loss },
      { label: "held-out, averaged weights", color: 2, curve: c.average_loss },
    ]);
    this.plots.get("tokens_per_second").update([
      { label: "measured", color: 0, curve: c.tokens_per_second },
      { label: "limit of the machine", color: 1, curve: smooth(limit(series.curves.tokens_per_second, series.curves.limit_share), this.smoothing) },
    ]);
    this.plots.get("disk_free").update([{ label: "free disk", color: 0, curve: c.disk_free }, { label: "free memory", color: 1, curve: c.memory_free }]);
    this.plots.get("seconds").update([{ label: "step", color: 0, curve: c.seconds }, { label: "waiting for data", color: 1, curve: c.data_wait }]);
    for (const [name, plot] of this.rare) {
      if (!c[name]) plot.node.remove();
      else if (!plot.node.isConnected) this.grid.append(plot.node);
      if (c[name]) plot.update([{ label: name, color: 0, curve: c[name] }]);
    }
    this.fillIncidents();
    this.fillMemory(summary);
    this.fillFacts(summary);
  }

  fillTiles(s) {
    const last = s.last ?? {}, tile = (name, value, note = "", bad = false) =>
      el("div", { class: "tile" + (bad ? " bad" : "") }, el("div", { class: "name" }, name), el("div", { class: "value" }, value), el("div", { class: "note" }, note));
    const around = s.surroundings ?? {};
    const share = s.steps > 0 && last.step !== undefined ? percent(last.step / s.steps) + " of " + whole(s.steps) : "";
    this.tiles.replaceChildren(
      tile("Step", whole(last.step), share),
      tile("Loss", loss(last.loss), "z " + short(last.loss_z, 2), Math.abs(last.loss_z ?? 0) > 6 || (s.last && last.loss === null)),
      tile("Held-out loss", loss(s.eval?.loss), s.eval ? "at step " + whole(s.eval.step) : "none yet"),
      tile("Gradient norm", short(last.grad_norm), "z " + short(last.grad_norm_z, 2), Math.abs(last.grad_norm_z ?? 0) > 6),
      tile("Parameter norm", short(last.param_norm)),
      tile("Learning rate", short(last.lr)),
      tile("Tokens per second", short(last.tokens_per_second), last.limit_share ? percent(last.limit_share) + " of the machine's limit" : ""),
      tile("Tokens", whole(last.tokens), around.epoch === null || around.epoch === undefined ? "" : short(around.epoch, 3) + " passes over the data"),
      tile("Memory", bytes(last.memory), "planned peak " + bytes(s.memory.peak) + (around.memory_free ? ", free " + bytes(around.memory_free) : "")),
      ...this.gpuTile(s.gpus, tile),
      tile("Free disk", bytes(around.disk_free), around.checkpoint_bytes ? `checkpoint ${bytes(around.checkpoint_bytes)}, ${duration(around.checkpoint_age)} old` : s.end ? "" : "no checkpoint yet"),
      s.end ? tile("Ended", s.end.reason, "at step " + whole(s.end.step))
            : tile("Time left", duration(s.seconds_left), s.condition === "running" ? "at the pace of the last steps" : "last event " + duration(s.idle) + " ago"),
      tile("Skipped steps", whole(s.skipped), "", s.skipped > 0),
      tile("Incidents", whole(s.incidents), "", s.incidents > 0),
    );
  }

  // The mean of the GPUs' work, and the hottest one; nothing for a run that knows of none.
  gpuTile(g, tile) {
    if (!g) return [];
    const of = (list) => list.filter((x) => x !== null), mean = (list) => (list.length ? list.reduce((a, b) => a + b, 0) / list.length : null);
    const reasons = [...new Set(g.reasons.flatMap((r) => r.split(", ")).filter((r) => r !== ""))].join(", ");
    return [tile(g.power.length > 1 ? "GPUs" : "GPU", percent(mean(of(g.utilization))) + " busy", `${short(mean(of(g.power)), 3)} W, ${short(Math.max(...of(g.temperature)), 3)} °C, ` +
      `${short(Math.min(...of(g.sm_clock)))} MHz${reasons ? "; " + reasons : ""}`, /heat|hardware|brake/.test(reasons))];
  }

  // A link has no header, so with a token the page fetches the file and saves it.
  report() {
    const path = `/api/runs/${this.app.run}/report`;
    return has_token() ? el("button", { type: "button", onclick: () => file(path).then((b) => save("report.html", b)).catch((e) => this.app.fail(e)) }, "Save report.html")
                       : el("a", { href: path, target: "_blank", rel: "noopener" }, "report.html");
  }

  fillIncidents() {
    const list = this.app.incidents?.incidents ?? [];
    const rows = list.slice(0, 5).map((i) => row([number(whole(i.step)), i.kind, i.text], { class: "link", tabindex: 0,
      onclick: () => this.app.openIncident(i.incident), onkeydown: (e) => e.key === "Enter" && this.app.openIncident(i.incident) }));
    this.incidents.replaceChildren(el("h2", {}, "Last incidents"),
      rows.length ? table([{ name: "step", number: true }, "kind", "text"], rows, "stack") : el("p", { class: "soft" }, "None: no step was skipped, and no rule of alerts fired."));
  }

  fillMemory(s) {
    const most = most_memory(s.memory.categories);
    this.memory.replaceChildren(el("h2", {}, "Memory at the peak, " + bytes(s.memory.peak)), ...s.memory.categories.map((c) => {
      const bar = el("i");
      bar.style.width = (100 * c.bytes) / most + "%";
      return el("div", { class: "bar" }, el("span", {}, c.name), bar, el("span", {}, bytes(c.bytes)));
    }));
  }

  fillFacts(s) {
    const m = s.model, facts = [
      ["folder", s.folder], ["recipe", s.recipe], ["seed", whole(s.seed)], ["started", s.started],
      ["model", `${m.family} ${m.size}, ${prefixed(m.parameters)} parameters, ${m.layers} layers, width ${m.width}, context ${m.context}`],
      ["machine", `${s.machine.name}, ${s.machine.threads} threads, GEMM limit ${prefixed(s.machine.gemm_limit_flops)}FLOP/s`],
      ["report", s.report ? this.report() : "none yet: octet report writes one"],
      ["ranks", whole(s.ranks_started)], ["tokens per step", whole(s.tokens_per_step)],
    ];
    this.facts.replaceChildren(el("h2", {}, "Facts"), el("table", {}, el("tbody", {}, facts.map(([k, v]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", {}, v))))));
  }
}

// Tokens per second that the machine would allow: measured / limit_share, where both curves have the same buckets.
function limit(rate, share) {
  if (!rate || !share) return null;
  const of = (list, other) => list.map((v, i) => (v === null || !other[i] ? null : v / other[i]));
  const mean = of(rate.mean, share.mean);
  return { first: rate.first, last: rate.last, mean, low: mean, high: mean };
}
