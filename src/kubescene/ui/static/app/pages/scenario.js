// A scenario over its steps and its time: drag, and see the cluster as it was, what changed, and who did it.

import { Cursor } from "../../shared/charts.js";
import { fill, h, refill } from "../../shared/dom.js";
import { drawOverTime } from "../../shared/over_time.js";
import { ask, ApiError, linesOf } from "../api.js";
import { SCENARIOS } from "../bringing.js";
import { Playing } from "../playing.js";
import { address } from "../router.js";
import { saveInstead } from "../signing_in.js";
import { asTime, lastBefore, majorFrom, Slider } from "../slider.js";
import { Story } from "../story.js";
import { World } from "../world.js";
import { ClusterView } from "./cluster.js";
import { toneOf } from "./scenarios.js";

const AGAIN_MS = 700;
const PLAY_MS = 350;
const ENDED = ["Succeeded", "Failed"];

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const [name] = visit.params, part = encodeURIComponent(name);
  return begun(new ScenarioPage(place, visit, { name, about: { run: name }, facts: (position) => `/simulator/v1/scenarios/${part}/timeline?since=${position}&follow=true`, run: "" }));
}

/** A page that has asked for the phase and follows the facts. @param {ScenarioPage} page */
export async function begun(page) {
  await page.ask();
  page.follow();
  return { title: page.name, leave: () => page.leave(), changed: (/** @type {Map<string, string>} */ query) => page.chosen(query) };
}

/**
 * Where the facts of a run are: those of a Scenario that is there, or of a run that is kept (then `run` is its id).
 * @typedef {{name: string, about: Record<string, string>, facts: (position: number) => string, run: string}} Told
 */

export class ScenarioPage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit @param {Told} told */
  constructor(place, visit, told) {
    this.name = told.name;
    this.told = told;
    this.run = told.run;
    this.router = visit.router;
    this.asked = visit.query.get("at") || "";
    this.world = new World();
    this.story = new Story(this.world);
    this.stop = new AbortController();
    this.place = -1;
    this.going = 0;
    this.phase = h("span", { class: "phase plain", id: "phase" }, "…");
    this.message = h("div", { id: "message" });
    this.when = h("b", { id: "when", class: "mono" }, "no step yet");
    this.playing = new Playing(visit.router, () => this.leave());
    this.slider = new Slider({ chosen: (at) => this.go(at, true), played: () => this.play() }, visit.query.get("axis") === "time" ? "time" : "steps");
    this.lines = h("ul", { id: "lines", class: "plain" });
    this.checks = h("ul", { class: "checks", id: "expectations" });
    this.charts = h("div", { class: "scene over", id: "over-time" });
    this.cursor = new Cursor();
    this.view_ = h("div", { class: "scene" });
    place.className = "cluster scenario";
    fill(place, this.controls(), this.message, this.playing.panel, this.slider.element,
      h("div", { class: "told-and-scene" }, h("section", { class: "happened" }, h("h2", {}, "What happened"), this.lines, this.checks), this.view_, this.charts));
    this.view = new ClusterView(this.view_, visit, this.world, told.about);
    this.showAs(visit.query.get("view") || "");
  }

  controls() {
    const button = (/** @type {string} */ text, /** @type {string} */ what, /** @type {() => void} */ does, id = "") => h("button", { type: "button", title: what, "aria-label": what, id: id || false, on: { click: does } }, text);
    const choice = (/** @type {string} */ name, /** @type {string} */ id, /** @type {string[][]} */ options, /** @type {(value: string) => void} */ does) => h("label", {}, name, h("select", { id, on: { change: (/** @type {any} */ event) => does(event.target.value) } },
      options.map(([value, text]) => h("option", { value, selected: value === (this.router.query.get(id) || "") }, text))));
    this.report = h("a", { id: "report", target: "_blank", rel: "noopener", hidden: true, on: { click: (/** @type {Event} */ event) => saveInstead(event, "report.html") } }, "Report");
    return h("div", { class: "controls" }, h("h1", {}, this.name), this.phase, this.when,
      h("span", { class: "row tight" }, button("|◀", "The step before (Shift+Left)", () => this.major(-1)), button("◁", "One moment back (Left)", () => this.go(this.place - 1, true)),
        button("▶", "Play (Space)", () => this.play(), "play"), button("▷", "One moment on (Right)", () => this.go(this.place + 1, true)), button("▶|", "The next step (Shift+Right)", () => this.major(1))),
      choice("axis", "axis", [["", "steps"], ["time", "virtual time"]], (value) => { this.router.note({ axis: value }, { push: true }); this.slider.by(value === "time" ? "time" : "steps"); }),
      choice("show", "view", [["", "nodes"], ["time", "charts over time"]], (value) => { this.router.note({ view: value }, { push: true }); this.showAs(value); }),
      this.playing.buttons, this.report, !this.told.run && h("a", { href: address(["r", "simulation.kube-scheduler-simulator.x-k8s.io", "v1alpha1", "scenarios", "-", this.name]) }, "YAML"));
  }

  /** @param {string} view nodes, or charts of the whole run */
  showAs(view) {
    this.view_.hidden = view === "time";
    this.charts.hidden = view !== "time";
    if (view === "time") this.drawCharts();
  }

  /** Requests, replicas, pods and machines over virtual time; a click goes there. */
  async drawCharts() {
    if (!this.run || this.drawn === this.run + this.phase.textContent) return;
    this.drawn = this.run + this.phase.textContent;
    const told = await ask(`/simulator/v1/runs/${this.run}/over-time`);
    this.charts.replaceChildren();
    if (!told.charts) fill(this.charts, h("p", { class: "more" }, "No time passed in it: there is nothing to draw over time."));
    else drawOverTime(this.charts, told, { cursor: this.cursor, chosen: (at) => this.go(lastBefore(this.story.moments, this.story.began + at * 1e9), true) });
  }

  /** @param {1 | -1} way */
  major(way) { this.go(majorFrom(this.story.moments, this.place, way), true); }

  leave() {
    this.stop.abort();
    clearTimeout(this.timer);
    clearTimeout(this.going);
    this.slider.leave();
    this.view.leave();
  }

  /** @param {Map<string, string>} query */
  chosen(query) {
    this.asked = query.get("at") || "";
    this.go(this.askedPlace());
    this.view.chosen(query);
  }

  /** The phase, and what was played, as the object has it. */
  async ask() {
    try {
      const { scenario, phase, message, isHeld } = await (this.told.run ? this.keptRun() : this.living());
      this.phase.className = `phase ${toneOf(phase)}`;
      this.phase.textContent = isHeld ? "held" : phase || "Pending";
      this.message.className = message ? "said" : "";
      this.message.textContent = message || "";
      this.playing.show(scenario, phase, isHeld);
      this.report.hidden = !this.run;
      this.report.setAttribute("href", `/simulator/v1/runs/${this.run}/report`);
      if (!this.charts.hidden) await this.drawCharts();
      if (!this.stop.signal.aborted && !ENDED.includes(phase) && !this.told.run) this.timer = setTimeout(() => this.ask().catch(() => {}), AGAIN_MS);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.phase.textContent = error.code === 404 ? "no such Scenario any more" : "…";
    }
  }

  async keptRun() {
    const path = `/simulator/v1/runs/${this.told.run}`, [{ phase, message }, scenario] = await Promise.all([ask(path), ask(`${path}/scenario`)]);
    return { scenario, phase, message, isHeld: false };
  }

  async living() {
    const part = encodeURIComponent(this.name), scenario = await ask(`${SCENARIOS}/${part}`), { phase = "", message = "" } = scenario.status || {};
    const { run = "", held = false } = phase && phase !== "Pending" ? await ask(`/simulator/v1/scenarios/${part}/progress`).catch(() => ({})) : {};
    this.run = run;
    return { scenario, phase, message, isHeld: held };
  }

  /** All facts, and those that come. */
  async follow() {
    let position = 0, timer = 0;
    const come = () => { timer = 0; this.grew(); };
    while (!this.stop.signal.aborted) {
      try {
        for await (const fact of linesOf(this.told.facts(position), this.stop.signal)) {
          if (fact.fact) position++;
          this.story.read(fact);
          if (!timer) timer = setTimeout(come, 100);
        }
        break;
      } catch (error) {
        if (this.stop.signal.aborted) return;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
    this.grew();
    await this.ask();
  }

  grew() {
    const { moments } = this.story;
    if (!moments.length) return;
    this.slider.show(moments);
    this.go(this.asked ? this.askedPlace() : moments.length - 1);
  }

  /** The moment that the address names: a step, and which of its instants. */
  askedPlace() {
    const { moments } = this.story;
    const found = /^(\d+)\.(\d+)(?:\/(\d+))?$/.exec(this.asked);
    if (!found) return moments.length - 1;
    const first = moments.findIndex((each) => each.major === Number(found[1]) && each.minor === Number(found[2]));
    return first < 0 ? moments.length - 1 : Math.min(moments.length - 1, first + Number(found[3] || 0));
  }

  /** @param {number} to @param {boolean} [isChosen] by the reader, so that it stays */
  go(to, isChosen = false) {
    const { moments } = this.story;
    const place = Math.max(0, Math.min(moments.length - 1, to));
    if (!moments.length) return;
    this.story.go(place);
    this.place = place;
    const moment = moments[place];
    this.slider.go(place);
    this.playing.step = moment.major;
    this.cursor.move((moment.time - this.story.began) / 1e9);
    const first = moments.findIndex((each) => each.major === moment.major && each.minor === moment.minor);
    if (isChosen) {
      this.asked = place === moments.length - 1 ? "" : `${moment.major}.${moment.minor}${place > first ? `/${place - first}` : ""}`;
      this.router.note({ at: this.asked });
    }
    const told = `${moment.major}.${moment.minor} · ${asTime(moment.time - this.story.began)}`;
    this.when.textContent = told;
    this.slider.range.setAttribute("aria-valuetext", `step ${told}`);
    refill(this.lines, [place, moment.lines.length], () => moment.lines.map((line) => h("li", { class: line.isBad ? "bad" : null }, h("span", { class: "actor" }, line.actor), line.href ? h("a", { href: address(line.href, Object.entries(this.told.about)) }, line.text) : line.text)).concat(moment.lines.length ? [] : h("li", { class: "more" }, "only statuses were written")));
    this.tellExpectations();
  }

  /** What was expected, as far as it was looked at by now, and what has turned. */
  tellExpectations() {
    const known = this.story.expectationsAt(this.place);
    refill(this.checks, known, () => known.map((each) => h("li", { class: each.holds ? "good" : "bad" }, h("span", { class: "mark" }, each.holds ? "holds" : "fails"),
      h("span", {}, each.name || each.expression, each.error && h("span", {}, `: ${each.error}`), each.hasTurned && h("small", {}, each.holds ? " now; it failed before" : " now; it held before")))));
  }

  play() {
    if (this.going) {
      clearTimeout(this.going);
      this.going = 0;
      return;
    }
    if (this.place >= this.story.moments.length - 1) this.go(0, true);
    const next = () => {
      this.go(this.place + 1, true);
      this.going = this.place < this.story.moments.length - 1 ? setTimeout(next, PLAY_MS) : 0;
    };
    this.going = setTimeout(next, PLAY_MS);
  }
}
