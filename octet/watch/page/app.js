// The page: which run and which view are shown, and the events that keep them up to date.
import { el, duration, percent } from "./dom.js";
import { get, follow } from "./api.js";
import { Overview } from "./overview.js";
import { Heat } from "./heat.js";
import { Incidents } from "./incidents.js";
import { Compare } from "./compare.js";
import { Ranks } from "./ranks.js";
import { Experts } from "./experts.js";
import { Runs } from "./runs.js";
import { Samples } from "./samples.js";
import { loadMetrics } from "./metrics.js";

const $ = (id) => document.getElementById(id);
const most_points = 3000, list_seconds = 3, reload_seconds = 1;

class App {
  constructor() {
    Object.assign(this, { runs: [], run: null, summary: null, series: null, incidents: null, wanted: null, lost: null, samples_told: 0, end: null, due: false });
    this.views = { Runs: new Runs(this), Overview: new Overview(this), "FP8 tensors": new Heat(this), Incidents: new Incidents(this), Compare: new Compare(this), Ranks: new Ranks(this), Experts: new Experts(this), Samples: new Samples(this) };
    $("views").append(...Object.keys(this.views).map((name) => el("button", { type: "button", onclick: () => this.show(name) }, name)));
    $("runs").addEventListener("change", (e) => ((this.lost = null), this.choose(Number(e.target.value))));
    $("theme").addEventListener("click", () => this.theme());
    document.addEventListener("keydown", (e) => this.key(e));
    window.addEventListener("resize", () => this.later());
    window.addEventListener("hashchange", () => this.fromHash());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.applyTheme());
    this.applyTheme();
    this.show("Overview", false);
    this.first = !location.hash;  // the address names no view: several runs are shown as a table first
    this.list();
  }

  // The address has the run and the view, so that a page can be reloaded and linked to.
  fromHash() {
    const words = new URLSearchParams(location.hash.slice(1)), run = this.numbered(words.get("run"));
    if (words.get("view") in this.views) this.show(words.get("view"), false);
    if (words.has("identity")) return this.fromReport(words);
    if (run !== this.run && this.runs.some((r) => r.run === run)) this.choose(run, false);
  }
  // A number of the list, or the name of a run.
  numbered(text) {
    if (text === null) return NaN;
    return /^\d+$/.test(text) ? Number(text) : (this.runs.find((r) => r.name === text)?.run ?? NaN);
  }
  // A link of a report names the run by its identity, and the incident by step and kind, since numbers depend on the folders that are watched.
  fromReport(words) {
    const found = this.runs.find((r) => r.identity === words.get("identity"));
    this.lost = found ? null : "the run of this link, " + words.get("identity") + ", is not in the watched folders; this is another one";
    if (!found) return;
    this.wanted = { step: Number(words.get("step")), kind: words.get("kind") };
    if (found.run !== this.run) return void this.choose(found.run);
    this.toHash();
    this.later();
  }
  toHash() {
    history.replaceState(null, "", "#" + new URLSearchParams({ run: this.run ?? 0, view: this.view }));
  }

  async list() {
    try {
      this.runs = (await get("/api/runs")).runs;
      this.fillRuns();
      if (this.run === null && this.runs.length > 0) {
        this.fromHash();
        if (this.run === null) this.choose(this.runs.reduce((a, b) => (b.started > a.started ? b : a)).run);
      }
      if (this.first && this.runs.length > 1) this.show("Runs", false);
      if (this.runs.length > 0) this.first = false;
      if (this.view === "Runs") this.later();
      if (this.runs.length === 0) this.fail(new Error("no runs in these folders yet"));
    } catch (error) {
      this.fail(error);
    }
    setTimeout(() => this.list(), 1000 * list_seconds);
  }
  fillRuns() {
    const texts = this.runs.map((r) => `${r.run} ${r.name}, ${r.condition}`);
    if ($("runs").options.length !== texts.length) $("runs").replaceChildren(...this.runs.map((r) => el("option", { value: r.run })));
    texts.forEach((text, i) => ($("runs").options[i].textContent = text));
    if (this.run !== null) $("runs").value = String(this.run);
  }

  async choose(run, told = true) {
    this.end?.();
    Object.assign(this, { run, summary: null, series: null, incidents: null });
    if (told) this.toHash();
    this.fillRuns();
    await this.reload();
    if (run !== this.run || !this.summary) return;
    this.end = follow(`/api/runs/${run}/events`, (name, data) => run === this.run && this.take(name, data), (good, why) => {
      $("link").textContent = good ? "live" : "not connected: " + why;
    });
  }

  async reload() {
    const run = this.run, base = "/api/runs/" + run;
    try {
      const [summary, series, incidents] = await Promise.all([get(base + "/summary"), get(base + "/series"), get(base + "/incidents")]);
      if (run !== this.run) return;
      Object.assign(this, { summary, series, incidents });
      this.fail(null);
      this.later();
      // A large file is read in the background: samples of it are shown until then.
      if (!summary.complete) setTimeout(() => run === this.run && this.reload(), 1500);
    } catch (error) {
      if (run === this.run) this.fail(error);
    }
  }

  // Once for several events: an alert comes with others, ranks and shared scales with each measurement.
  reloadSoon() {
    if (this.soon) return;
    this.soon = setTimeout(() => ((this.soon = null), this.reload()), 1000 * reload_seconds);
  }

  take(name, data) {
    if (name === "condition") this.summary.condition = data.condition;
    if (name === "reload") return void this.reload();
    if (name === "health" && this.view === "FP8 tensors") return void this.views[this.view].load().catch((e) => this.fail(e));
    if (name === "curves") for (const [curve, value] of Object.entries(data.values)) this.append(curve, data.step, value);
    if (name === "event") this.takeEvent(data);
    this.later();
  }
  takeEvent(e) {
    const { summary, series } = this;
    if (e.event === "step") {
      summary.last = { ...e };
      if (e.skipped) ++summary.skipped;
      if (summary.steps > 0 && summary.seconds_left !== null && e.seconds) summary.seconds_left = (summary.steps - e.step) * this.pace(e.seconds);
      if (series.curves.loss.last.length > most_points) this.reload();
    } else if (e.event === "eval") {
      summary.eval = e;
    } else if (e.event === "machine") {
      summary.surroundings = e;
    } else if (e.event === "sample") {
      ++this.samples_told;
    } else {
      this.reloadSoon();
    }
  }
  append(name, step, value) {
    const c = (this.series.curves[name] ??= { first: [], last: [], mean: [], low: [], high: [] });
    // Steps that recovery repeats replace the earlier ones.
    while (c.last.length > 0 && step <= c.first[c.first.length - 1]) for (const list of Object.values(c)) list.pop();
    if (c.last.length > 0 && step <= c.last[c.last.length - 1]) return;
    c.first.push(step), c.last.push(step), c.mean.push(value), c.low.push(value), c.high.push(value);
  }
  pace(seconds) {
    const last = this.series.curves.seconds.mean.slice(-64).filter((s) => s !== null).sort((a, b) => a - b);
    return last[Math.floor(last.length / 2)] ?? seconds;
  }

  show(name, told = true) {
    this.view = name;
    for (const button of $("views").children) button.setAttribute("aria-current", button.textContent === name ? "page" : "false");
    $("view").replaceChildren(this.views[name].node);
    if (told) this.toHash();
    this.later();
  }
  openTensor(tensor) {
    this.show("FP8 tensors");
    this.views["FP8 tensors"].openTensor(tensor).catch((e) => this.fail(e));
  }
  open(run) {
    this.show("Overview");
    if (run !== this.run) this.choose(run);
  }
  compares(run) {
    return this.views.Compare.chosen.includes(run);
  }
  compare(run, on) {
    this.views.Compare.choose(run, on);
  }
  openIncident(incident) {
    this.show("Incidents");
    this.views.Incidents.open(incident);
  }

  // Draws once for all events of a quarter of a second.
  later() {
    if (this.due) return;
    this.due = true;
    setTimeout(() => {
      this.due = false;
      this.head();
      if (this.summary || this.view === "Runs") this.views[this.view].update();
    }, 250);
  }
  head() {
    const s = this.summary;
    if (!s) return;
    $("condition").textContent = s.condition;
    $("condition").className = "badge " + s.condition;
    $("progress").textContent = !s.complete ? "reading the run, " + percent(s.share_read) + "; samples are shown" : ["running", "finished"].includes(s.condition) ? "" : "last event " + duration(s.idle) + " ago";
    document.title = s.name + " – octet watch";
    if (s.problem || this.lost) this.fail(new Error(s.problem || this.lost));
  }
  fail(error) {
    $("problem").hidden = !error;
    $("problem").textContent = error ? String(error.message ?? error) : "";
  }

  applyTheme() {
    const chosen = localStorage.getItem("octet-theme"), dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.later();
  }
  theme() {
    localStorage.setItem("octet-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    this.applyTheme();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
    const names = Object.keys(this.views), at = this.runs.findIndex((r) => r.run === this.run);
    if (event.key >= "1" && event.key <= String(names.length)) this.show(names[Number(event.key) - 1]);
    if (event.key === "t") this.theme();
    if (event.key === "j" && at + 1 < this.runs.length) this.choose(this.runs[at + 1].run);
    if (event.key === "k" && at > 0) this.choose(this.runs[at - 1].run);
  }
}

// Without the words of metrics, plots have their names: the page then says why.
loadMetrics().catch(() => null).then(() => new App());
