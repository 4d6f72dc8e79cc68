// The incidents of a run, and the steps around one of them.
import { el, short, loss, whole, duration, table, row, number } from "./dom.js";
import { get } from "./api.js";
import { Plot } from "./plot.js";

const curve = (steps, name) => {
  const values = steps.map((s) => s[name]), at = steps.map((s) => s.step);
  return { first: at, last: at, mean: values, low: values, high: values };
};

// Kinds of incidents that change the course of the run by themselves.
const reactions = ["skipped", "loss_scale", "recovery"], most_reactions = 5;

export class Incidents {
  constructor(app) {
    Object.assign(this, { app, chosen: null });
    this.list = el("section", { class: "list" });
    this.detail = el("section");
    this.node = el("div", {}, this.list, this.detail);
  }

  update() {
    const all = this.app.incidents;
    if (!all) return;
    const newest = all.incidents[0]?.incident;
    if (this.run !== this.app.run) this.run = this.app.run, this.chosen = null, this.detail.replaceChildren();
    if (this.app.wanted) this.openWanted(all.incidents);
    if (this.chosen === null && newest !== undefined) this.open(newest);
    const rows = all.incidents.map((i) => row([number(whole(i.step)), duration(i.time), i.kind, i.path, i.text], { class: "link" + (i.incident === this.chosen ? " here" : ""), tabindex: 0,
      onclick: () => this.open(i.incident), onkeydown: (e) => e.key === "Enter" && this.open(i.incident) }));
    const at = this.list.querySelector(".scroll")?.scrollTop ?? 0;
    this.list.replaceChildren(el("h2", {}, `Incidents, ${whole(all.seen)} in all, newest first`),
      rows.length ? table([{ name: "step", number: true }, "after", "kind", "module", "text"], rows, "stack") : el("p", { class: "soft" }, "None: no step was skipped, and no rule of alerts fired."));
    if (rows.length) this.list.querySelector(".scroll").scrollTop = at;
  }

  // The incident that a report linked to: that of its kind at its step, or else the next one.
  openWanted(list) {
    const { step, kind } = this.app.wanted, distance = (i) => Math.abs(i.step - step) + (i.kind === kind ? 0 : 0.5);
    this.app.wanted = null;
    const found = list.reduce((a, b) => (a === null || distance(b) < distance(a) ? b : a), null);
    if (found) this.open(found.incident);
  }

  open(incident) {
    this.chosen = incident;
    this.app.later();
    get(`/api/runs/${this.app.run}/incidents?incident=${incident}`).then((i) => this.show(i)).catch((e) => this.app.fail(e));
  }

  show(i) {
    const grid = el("div", { class: "grid" }), plots = [];
    for (const [name, title, logarithmic] of [["loss", "Loss", false], ["loss_z", "Loss z-score", false], ["grad_norm", "Gradient norm", true], ["lr", "Learning rate", false]]) {
      const plot = new Plot({ title, unit: logarithmic ? "logarithmic" : "", logarithmic, mark: i.step });
      grid.append(plot.node);
      plots.push(() => plot.update([{ label: name, color: 0, curve: curve(i.steps, name) }]));
    }
    const movers = i.movers.map((m, k) => row([number(String(k + 1)), m.path, m.operand, number(whole(m.step)),
      number(m.bits === null ? "not finite" : (m.bits > 0 ? "+" : "") + short(m.bits, 3)), number(m.deviations === null ? "–" : short(m.deviations, 3))],
      { class: "link", tabindex: 0, onclick: () => this.app.openTensor(m.tensor), onkeydown: (e) => e.key === "Enter" && this.app.openTensor(m.tensor) }));
    const steps = i.steps.map((s) => row([number(whole(s.step)), number(loss(s.loss), s.loss === null), number(short(s.loss_z, 3), Math.abs(s.loss_z ?? 0) > 6),
      number(short(s.grad_norm), s.grad_norm === null), number(short(s.lr)), s.skipped ? "skipped" : ""], { class: s.step === i.step ? "here" : null }));
    const near = i.nearby.map((n) => row([number(whole(n.step)), n.kind, n.path, n.text]));
    // From the incident on: later steps of the list are another cause's.
    const done = i.nearby.filter((n) => n.step >= i.step && reactions.some((kind) => n.kind.startsWith(kind)));
    this.detail.replaceChildren(
      el("h2", {}, `Step ${whole(i.step)}: ${i.kind}`), el("p", {}, i.text), i.remedy ? el("p", {}, el("strong", {}, "Remedy: "), i.remedy) : "", i.path ? el("p", {}, "First seen in ", el("code", {}, i.path)) : "",
      el("p", {}, el("strong", {}, "What was done: "), done.length ? done.slice(0, most_reactions).map((n) => n.text).join("; ") + (done.length > most_reactions ? `; and ${done.length - most_reactions} more` : "")
                                                              : "nothing; training continued."),
      grid,
      el("div", { class: "columns" },
        el("section", {}, el("h3", {}, "Tensors that moved first"), el("p", { class: "soft" }, "Maxima more than 6 robust deviations from their median of the steps before, the earliest first. Bits are log2 of the ratio."),
          movers.length ? table([{ name: "#", number: true }, "tensor", "operand", { name: "step", number: true }, { name: "bits", number: true }, { name: "deviations", number: true }], movers)
                        : el("p", { class: "soft" }, "None.")),
        el("section", {}, el("h3", {}, "Events of these steps"), table([{ name: "step", number: true }, "kind", "module", "text"], near, "stack"))),
      el("h3", {}, "The 20 steps before and after"),
      table(["step", "loss", "z", "gradient norm", "learning rate"].map((name) => ({ name, number: true })).concat([""]), steps));
    for (const draw of plots) draw();  // a plot takes the size that it has on the page
  }
}
