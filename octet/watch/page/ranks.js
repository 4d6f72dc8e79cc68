// The ranks of a run: which one is slow, and how much of a step is spent in collectives.
import { el, short, whole, percent, bytes, table, row, number } from "./dom.js";
import { Plot } from "./plot.js";

export class Ranks {
  constructor(app) {
    this.app = app;
    this.exposed = new Plot({ title: "Exposed communication", unit: "mean share of a step in collectives", show: percent });
    this.busy = new Plot({ title: "Slowest rank", unit: "seconds outside of collectives" });
    this.list = el("section");
    this.node = el("div", {}, el("div", { class: "grid" }, this.exposed.node, this.busy.node), this.list);
  }

  update() {
    const { summary, series } = this.app;
    if (!summary || !series) return;
    this.exposed.update([{ label: "exposed", color: 0, curve: series.curves.exposed }]);
    this.busy.update([{ label: "busy", color: 1, curve: series.curves.slowest_busy }]);
    const r = summary.ranks;
    if (!r) {
      this.list.replaceChildren(el("p", { class: "soft" }, summary.ranks_started > 1 ? "No event of ranks yet." : "This run has one rank."));
      return;
    }
    const events = r.slowest_counts.reduce((a, b) => a + b, 0);
    this.list.replaceChildren(el("h2", {}, `Step ${whole(r.step)}: ${bytes(r.sent_bytes)} sent per rank, ${percent(r.exposed)} of the step in collectives`),
      table([{ name: "rank", number: true }, { name: "seconds", number: true }, { name: "in collectives", number: true }, { name: "slowest, of " + whole(events) + " events", number: true }],
        r.seconds.map((s, i) => row([number(String(i), i === r.slowest), number(short(s)), number(short(r.waited[i])), number(whole(r.slowest_counts[i] ?? 0))]))));
  }
}
