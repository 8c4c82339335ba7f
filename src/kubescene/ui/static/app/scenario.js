// A scenario over its steps and its time: drag, and see the cluster as it was, what changed, and who did it.

import { colours } from "../shared/colours.js";
import { fill, h, number, refill } from "../shared/dom.js";
import { ask, ApiError, linesOf } from "./api.js";
import { SCENARIOS } from "./bringing.js";
import { ClusterView } from "./cluster.js";
import { address } from "./router.js";
import { toneOf } from "./scenarios.js";
import { Story } from "./story.js";
import { toast } from "./toasts.js";
import { World } from "./world.js";

const AGAIN_MS = 700;
const PLAY_MS = 350;
const STRIP = 44;

/** @param {HTMLElement} place @param {import("./router.js").Visit} visit */
export async function show(place, visit) {
  const [name] = visit.params, part = encodeURIComponent(name);
  return begun(new ScenarioPage(place, visit, { name, about: { run: name }, facts: (position) => `/simulator/v1/scenarios/${part}/timeline?since=${position}&follow=true`, entry: "" }));
}

/** A page that has asked for the phase and follows the facts. @param {ScenarioPage} page */
export async function begun(page) {
  await page.ask();
  page.follow();
  return { title: page.name, leave: () => page.leave(), changed: (/** @type {Map<string, string>} */ query) => page.chosen(query) };
}

/**
 * Where the facts of a run are: those of a Scenario that is there, or of a run that is kept (then `entry` describes it).
 * @typedef {{name: string, about: Record<string, string>, facts: (position: number) => string, entry: string}} Told
 */

export class ScenarioPage {
  /** @param {HTMLElement} place @param {import("./router.js").Visit} visit @param {Told} told */
  constructor(place, visit, told) {
    this.name = told.name;
    this.told = told;
    this.router = visit.router;
    this.asked = visit.query.get("at") || "";
    this.world = new World();
    this.story = new Story(this.world);
    this.stop = new AbortController();
    this.place = -1;
    this.playing = 0;
    this.phase = h("span", { class: "phase plain", id: "phase" }, "…");
    this.message = h("div", { id: "message" });
    this.when = h("b", { id: "when", class: "mono" }, "no step yet");
    this.range = /** @type {HTMLInputElement} */ (h("input", { type: "range", id: "slider", min: 0, max: 0, value: 0, "aria-label": "Moment of the scenario", on: {
      input: () => this.go(Number(this.range.value), true), keydown: (/** @type {KeyboardEvent} */ event) => this.key(event) } }));
    this.strip = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "plot", id: "steps", "aria-hidden": "true" }));
    this.strip.addEventListener("click", (event) => {
      const box = this.strip.getBoundingClientRect();
      this.go(Math.floor(((event.clientX - box.left) / box.width) * this.story.moments.length), true);
    });
    this.lines = h("ul", { id: "lines", class: "plain" });
    this.checks = h("ul", { class: "checks", id: "expectations" });
    const button = (/** @type {string} */ text, /** @type {string} */ what, /** @type {() => void} */ does, id = "") => h("button", { type: "button", title: what, "aria-label": what, id: id || false, on: { click: does } }, text);
    const view = h("div", { class: "scene" });
    place.className = "cluster scenario";
    fill(place, 
      h("div", { class: "controls" }, h("h1", {}, this.name), this.phase, this.when,
        button("|◀", "The step before (Shift+Left)", () => this.go(this.story.major(this.place, -1), true)), button("◁", "One moment back (Left)", () => this.go(this.place - 1, true)),
        button("▶", "Play (Space)", () => this.play(), "play"), button("▷", "One moment on (Right)", () => this.go(this.place + 1, true)), button("▶|", "The next step (Shift+Right)", () => this.go(this.story.major(this.place, 1), true)),
        !told.entry && h("a", { href: address(["r", "simulation.kube-scheduler-simulator.x-k8s.io", "v1alpha1", "scenarios", "-", this.name]) }, "YAML"), !told.entry && button("Play again", "Play the same once more, under another name", () => this.again(), "again")),
      this.message, h("div", { class: "slider" }, this.strip, this.range),
      h("div", { class: "told-and-scene" }, h("section", { class: "happened" }, h("h2", {}, "What happened"), this.lines, this.checks), view));
    this.view = new ClusterView(view, visit, this.world, told.about);
    this.resized = () => this.drawStrip();
    addEventListener("resize", this.resized);
    addEventListener("themed", this.resized);
  }

  leave() {
    this.stop.abort();
    clearTimeout(this.timer);
    clearTimeout(this.playing);
    removeEventListener("resize", this.resized);
    removeEventListener("themed", this.resized);
    this.view.leave();
  }

  /** @param {Map<string, string>} query */
  chosen(query) {
    this.asked = query.get("at") || "";
    this.go(this.askedPlace());
    this.view.chosen(query);
  }

  /** The phase, as the object has it. */
  async ask() {
    try {
      const object = await ask(this.told.entry || `${SCENARIOS}/${encodeURIComponent(this.name)}`);
      const status = this.told.entry ? object : object.status || {};
      this.object = object;
      this.phase.className = `phase ${toneOf(status.phase)}`;
      this.phase.textContent = status.phase || "Pending";
      this.message.className = status.message ? "said" : "";
      this.message.textContent = status.message || "";
      if (!this.stop.signal.aborted && !["Succeeded", "Failed"].includes(status.phase)) this.timer = setTimeout(() => this.ask().catch(() => {}), AGAIN_MS);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.phase.textContent = error.code === 404 ? "no such Scenario any more" : "…";
    }
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
    this.range.max = String(moments.length - 1);
    this.go(this.asked ? this.askedPlace() : moments.length - 1);
    this.drawStrip();
    fill(this.checks, ...this.story.expectations.map((each) => h("li", { class: each.holds ? "good" : "bad" }, h("span", { class: "mark" }, each.holds ? "holds" : "fails"), h("span", {}, each.name || each.expression, each.error && h("span", {}, `: ${each.error}`)))));
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
    this.range.value = String(place);
    const first = moments.findIndex((each) => each.major === moment.major && each.minor === moment.minor);
    if (isChosen) {
      this.asked = place === moments.length - 1 ? "" : `${moment.major}.${moment.minor}${place > first ? `/${place - first}` : ""}`;
      this.router.note({ at: this.asked });
    }
    const told = `${moment.major}.${moment.minor} · ${asTime(moment.time - this.story.began)}`;
    this.when.textContent = told;
    this.range.setAttribute("aria-valuetext", `step ${told}`);
    refill(this.lines, [place, moment.lines.length], () => moment.lines.map((line) => h("li", { class: line.isBad ? "bad" : null }, h("span", { class: "actor" }, line.actor), line.href ? h("a", { href: address(line.href, Object.entries(this.told.about)) }, line.text) : line.text)).concat(moment.lines.length ? [] : h("li", { class: "more" }, "only statuses were written")));
    this.drawStrip();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === " ") {
      event.preventDefault();
      this.play();
    }
    if (!event.shiftKey || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    event.preventDefault();
    this.go(this.story.major(this.place, event.key === "ArrowLeft" ? -1 : 1), true);
  }

  play() {
    if (this.playing) {
      clearTimeout(this.playing);
      this.playing = 0;
      return;
    }
    if (this.place >= this.story.moments.length - 1) this.go(0, true);
    const next = () => {
      this.go(this.place + 1, true);
      this.playing = this.place < this.story.moments.length - 1 ? setTimeout(next, PLAY_MS) : 0;
    };
    this.playing = setTimeout(next, PLAY_MS);
  }

  /** The same once more, under a name of its own: this run stays to be compared with. */
  async again() {
    if (!this.object) return;
    const { metadata, spec, apiVersion, kind } = this.object;
    try {
      const { items } = await ask(SCENARIOS);
      const taken = new Set(items.map((/** @type {any} */ each) => each.metadata.name));
      const base = metadata.name.replace(/-\d+$/, "");
      let count = 2;
      while (taken.has(`${base}-${count}`)) count++;
      const made = await ask(SCENARIOS, { method: "POST", body: { apiVersion, kind, metadata: { name: `${base}-${count}`, labels: metadata.labels }, spec } });
      await this.router.go(address(["scenario", made.metadata.name]));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      toast(error.message, true);
    }
  }

  drawStrip() {
    const { moments } = this.story;
    const width = this.strip.clientWidth, ratio = window.devicePixelRatio || 1;
    if (!width || !moments.length) return;
    this.strip.width = width * ratio;
    this.strip.height = STRIP * ratio;
    this.strip.style.height = `${STRIP}px`;
    const paint = /** @type {CanvasRenderingContext2D} */ (this.strip.getContext("2d"));
    const ink = colours(), wide = width / moments.length;
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.font = "11px system-ui, sans-serif";
    const most = Math.max(1, ...moments.map((each) => each.bound + each.failed + each.gone));
    let lastLabel = -100;
    moments.forEach((moment, at) => {
      const x = at * wide;
      if (at === 0 || moments[at - 1].major !== moment.major) {
        paint.fillStyle = ink.line;
        paint.fillRect(x, 0, 1, STRIP);
        if (x - lastLabel > 30) {
          paint.fillStyle = ink.soft;
          paint.fillText(number(moment.major), x + 4, 11);
          lastLabel = x;
        }
      }
      let base = STRIP;
      for (const [count, fill] of /** @type {[number, string][]} */ ([[moment.bound, ink["good-fill"]], [moment.failed, ink["bad-fill"]], [moment.gone, ink["odd-fill"]]])) {
        const tall = count ? Math.max(2, (count / most) * (STRIP - 16)) : 0;
        paint.fillStyle = fill;
        paint.fillRect(x + Math.min(1, wide / 4), base - tall, Math.max(1, wide - 2), tall);
        base -= tall;
      }
      if (at === this.place) {
        paint.strokeStyle = ink.text;
        paint.strokeRect(x + 0.5, 0.5, Math.max(2, wide - 1), STRIP - 1);
      }
    });
  }
}

/** @param {number} nanoseconds */
export function asTime(nanoseconds) {
  const seconds = Math.floor(nanoseconds / 1e9);
  const part = (/** @type {number} */ value) => String(value).padStart(2, "0");
  return `+${Math.floor(seconds / 3600)}:${part(Math.floor(seconds / 60) % 60)}:${part(seconds % 60)}`;
}
