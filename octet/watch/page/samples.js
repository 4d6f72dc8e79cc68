// Texts that the model continued while it trained (train.sample_every), as text nodes.
import { el, whole, duration } from "./dom.js";
import { get } from "./api.js";

export class Samples {
  constructor(app) {
    this.app = app;
    this.node = el("section");
  }

  // Samples that came since the last call are loaded with those before them: they are few.
  update() {
    const key = this.app.run + " " + this.app.samples_told;
    if (this.loaded === key) return;
    this.loaded = key;
    const run = this.app.run;
    get(`/api/runs/${run}/samples`).then((s) => run === this.app.run && this.show(s.samples)).catch((e) => this.app.fail(e));
  }

  show(samples) {
    const one = (s) => el("article", { class: "sample" },
      el("h3", {}, "Step " + whole(s.step), el("span", { class: "soft" }, ` after ${duration(s.time)}, ${whole(s.tokens)} tokens` + (s.end === "length" ? "" : ", " + s.end))),
      el("pre", {}, el("span", { class: "prompt" }, s.prompt), s.text));
    this.node.replaceChildren(el("h2", {}, "Samples of text"),
      el("p", { class: "soft" }, samples.length ? "The prompt is grey; the model wrote the rest. Newest first." : "None: train.sample_every is 0, or no step had one yet."),
      ...samples.map(one));
  }
}
