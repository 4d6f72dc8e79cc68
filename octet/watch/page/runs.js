// All runs: search, order, groups, hiding; a click shows a run, boxes choose runs to compare.
import { el, short, loss, whole, table, row, number } from "./dom.js";

const best_first = new Set(["started", "step", "speed"]);  // the largest value is of interest
// wide: left out on narrow screens, so that the loss is on them.
const columns = [
  { key: "name", name: "run", of: (r) => r.name },
  { key: "recipe", name: "recipe", of: (r) => r.recipe },
  { key: "model", name: "model", wide: true, of: (r) => r.model },
  { key: "condition", name: "state", of: (r) => r.condition },
  { key: "step", name: "step", number: true, of: (r) => r.last?.step ?? null, show: whole },
  { key: "loss", name: "loss", number: true, of: (r) => r.last?.loss ?? null, show: (v) => loss(v) },
  { key: "eval", name: "held-out loss", number: true, of: (r) => r.eval?.loss ?? null, show: (v) => loss(v) },
  { key: "speed", name: "tokens per second", number: true, of: (r) => r.last?.tokens_per_second ?? null, show: short },
  { key: "started", name: "started", wide: true, of: (r) => r.started },
];

const groups = Object.fromEntries(columns.filter((c) => ["recipe", "model", "condition"].includes(c.key)).map((c) => [c.name, c]));

export class Runs {
  constructor(app) {
    Object.assign(this, { app, order: columns.find((c) => c.key === "started"), falling: true, group: null, hidden: new Set(), text: "" });
    this.count = el("span", { class: "soft" }), this.list = el("section");
    this.back = el("button", { type: "button", hidden: true, onclick: () => (this.hidden.clear(), this.update()) }, "Show hidden runs");
    this.node = el("div", {}, el("div", { class: "tools" },
      el("label", {}, "Search ", el("input", { type: "search", placeholder: "name, recipe, model or state", oninput: (e) => ((this.text = e.target.value.toLowerCase()), this.update()) })),
      el("label", {}, "Group by ", el("select", { onchange: (e) => ((this.group = groups[e.target.value] ?? null), this.update()) },
        ["nothing", ...Object.keys(groups)].map((name) => el("option", { value: name }, name)))),
      this.count, this.back), this.list);
  }

  shown() {
    const matches = (r) => this.text.split(/\s+/).every((word) => columns.some((c) => !c.number && String(c.of(r)).toLowerCase().includes(word)));
    const { of } = this.order, sign = this.falling ? -1 : 1;
    const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : sign * (a < b ? -1 : 1));
    return this.app.runs.filter((r) => !this.hidden.has(r.run) && matches(r)).sort((a, b) => compare(of(a), of(b)) || a.run - b.run);
  }

  sort(column) {
    this.falling = this.order === column ? !this.falling : best_first.has(column.key);
    this.order = column;
    this.update();
  }

  // A table is left as it is while nothing in it changes: a live run tells of each step, and a click or the focus would be lost.
  update() {
    const runs = this.shown(), { order, falling, app } = this, state = [order.key, falling, this.group?.key, app.run, this.hidden.size, app.runs.length];
    const key = JSON.stringify([state, runs.map((r) => [r.run, app.compares(r.run), columns.map((c) => c.of(r))])]);
    if (key === this.key) return;
    this.key = key;
    this.count.textContent = `${whole(runs.length)} of ${whole(this.app.runs.length)} runs`;
    this.back.hidden = this.hidden.size === 0;
    const head = (c) => ({ number: c.number, wide: c.wide, name: el("button", { type: "button", class: "plain", onclick: () => this.sort(c) }, c.name + (this.order === c ? (this.falling ? " ↓" : " ↑") : "")) });
    this.list.replaceChildren(runs.length === 0 ? el("p", { class: "soft" }, "No run matches.") : table([{ name: el("span", { class: "wide" }, "compare") }, ...columns.map(head), ""], this.lines(runs)));
  }

  // A line with the name of a group and its lowest loss comes before its runs; groups are in the order of their first runs.
  lines(runs) {
    if (!this.group) return runs.map((r) => this.line(r));
    const parts = new Map();
    for (const r of runs) parts.set(this.group.of(r), [...(parts.get(this.group.of(r)) ?? []), r]);
    return [...parts].flatMap(([name, part]) => {
      const best = part.map((r) => r.eval?.loss ?? null).filter((x) => x !== null).reduce((a, b) => Math.min(a, b), Infinity);
      const text = `${name}: ${whole(part.length)} ${part.length === 1 ? "run" : "runs"}` + (best < Infinity ? `, lowest held-out loss ${loss(best)}` : "");
      return [el("tr", { class: "group" }, el("td", { colspan: columns.length + 2 }, text)), ...part.map((r) => this.line(r))];
    });
  }

  line(r) {
    const stop = (work) => (e) => (e.stopPropagation(), work(e)), open = () => this.app.open(r.run);
    const cells = columns.map((c) => (c.key === "condition" ? el("span", { class: "badge " + r.condition }, r.condition) : c.number ? number(c.show(c.of(r))) : c.wide ? el("td", { class: "wide" }, String(c.of(r))) : String(c.of(r))));
    const box = el("input", { type: "checkbox", "aria-label": "compare " + r.name, checked: this.app.compares(r.run), onclick: stop((e) => this.app.compare(r.run, e.target.checked)) });
    const hide = el("button", { type: "button", onclick: stop(() => (this.hidden.add(r.run), this.update())) }, "Hide");
    return row([box, ...cells, hide], { class: "link" + (r.run === this.app.run ? " here" : ""), tabindex: 0, onclick: open, onkeydown: (e) => e.key === "Enter" && e.target.tagName === "TR" && open() });
  }
}
