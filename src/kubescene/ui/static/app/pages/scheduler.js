// How the scheduler is configured: plugins as a form, the whole as YAML, checked by the server while it is typed.

import { fill, h } from "../../shared/dom.js";
import { ask, ApiError } from "../api.js";
import { SCENARIOS } from "../bringing.js";
import { Editor } from "../editor.js";
import { asName, create, freeName } from "../forks.js";
import { address } from "../router.js";
import { toast } from "../toasts.js";
import { asYaml } from "../yaml.js";

const PATH = "/simulator/v1/schedulerconfiguration";
const LATER_MS = 250;
const LOOK_MS = 300;
/** What a field of arguments may be, where there are few words for it. */
const WORDS = new Map([["scoringStrategy.type", ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]], ["defaultingType", ["System", "List"]]]);

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const page = new SchedulerPage(place, visit);
  await page.read();
  return { title: "Scheduler", leave: () => page.leave() };
}

class SchedulerPage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
  constructor(place, visit) {
    this.router = visit.router;
    this.timer = 0;
    /** @type {any} */
    this.told = null;
    /** @type {Map<string, any[]>} by profile, all plugins that were ever seen: who is switched off stays in the form */
    this.known = new Map();
    this.editor = new Editor({ id: "yaml", name: "KubeSchedulerConfiguration", rows: 30, changed: () => this.later() });
    this.said = h("div", { id: "said", role: "alert" });
    this.form = h("div", { id: "profiles" });
    /** @type {Set<string>} of plugins whose arguments are unfolded */
    this.unfolded = new Set();
    this.applying = h("button", { type: "button", id: "apply", class: "primary", on: { click: () => this.tried(() => this.apply()) } }, "Apply");
    place.className = "reading wide-reading";
    fill(place, h("h1", {}, "Scheduler"), h("p", { class: "story" }, "The configuration in force, complete. Whatever is changed takes effect as a whole, or not at all."), this.said,
      h("p", { class: "row" }, this.applying, h("button", { type: "button", id: "rehearse", title: "Apply, play the scenario that was played last once more, and compare", on: { click: () => this.tried(() => this.rehearse()) } }, "Apply, and play the last scenario again"),
        h("button", { type: "button", on: { click: () => this.read() } }, "Read again")),
      h("div", { class: "editing" }, this.form, this.editor.element));
  }

  leave() {
    this.isGone = true;
    clearTimeout(this.timer);
  }

  async read() {
    this.take(await ask(PATH));
    this.editor.value = asYaml(this.told);
    this.say("");
  }

  /** @param {any} told a configuration with all its defaults */
  take(told) {
    this.told = told;
    for (const profile of told.profiles || []) {
      const known = this.known.get(profile.schedulerName) || [], there = pluginsOf(profile);
      this.known.set(profile.schedulerName, [...there, ...known.filter((each) => !there.some((other) => other.name === each.name))]);
    }
    this.draw();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tried(() => this.check()), LATER_MS);
  }

  /** What the text would be with its defaults, or what is wrong with it. */
  async check() {
    const text = this.editor.value, told = await ask(`${PATH}?dryRun=All`, { method: "POST", body: text });
    if (text !== this.editor.value || this.isGone) return;
    this.take(told);
    this.say("The scheduler would take this.", true);
  }

  async apply() {
    await ask(PATH, { method: "POST", body: this.editor.value });
    toast("The scheduler has the new configuration.");
    await this.read();
  }

  /** @param {() => Promise<void>} does */
  async tried(does) {
    try {
      await does();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.say(error.message);
    }
  }

  /** @param {string} text @param {boolean} [isGood] */
  say(text, isGood = false) {
    this.said.className = text ? `said ${isGood ? "good" : ""}` : "";
    this.said.textContent = text;
  }

  /** The newest run once more, under what is written here, and both beside each other. */
  async rehearse() {
    const { runs } = await ask("/simulator/v1/runs?kind=scenario&limit=1");
    if (!runs.length) throw new ApiError(0, "No scenario was played yet: play one first.");
    const scenario = await ask(`/simulator/v1/runs/${runs[0].id}/scenario`);
    if (scenario.spec.simulation) delete scenario.spec.simulation.schedulerConfig;
    await ask(PATH, { method: "POST", body: this.editor.value });
    const made = await create({ ...scenario, metadata: { name: await freeName(asName(scenario.metadata.name)) } });
    this.say(`Playing ${made.metadata.name} …`, true);
    const other = await this.ended(made.metadata.name);
    if (other && !this.isGone) await this.router.go(address(["compare"], [["a", runs[0].id], ["b", other]]));
  }

  /** The id of a run, once it has ended or waits. @param {string} name @returns {Promise<string>} */
  async ended(name) {
    while (!this.isGone) {
      const { phase = "", message = "" } = (await ask(`${SCENARIOS}/${encodeURIComponent(name)}`)).status || {};
      if (phase === "Failed") throw new ApiError(0, `${name} failed: ${message}`);
      if (phase === "Succeeded" || phase === "Paused") return (await ask(`/simulator/v1/scenarios/${encodeURIComponent(name)}/progress`)).run;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    return "";
  }

  draw() {
    const had = /** @type {any} */ (document.activeElement), isInside = this.form.contains(had);
    // Somebody is typing: what they change is drawn then.
    if (isInside && had.matches("input:not([type=checkbox])") && had.value !== had.defaultValue) return;
    this.unfolded = new Set([...this.form.querySelectorAll("details[open]")].map((each) => each.id));
    fill(this.form, (this.told.profiles || []).map((/** @type {any} */ profile, /** @type {number} */ at) => h("section", {}, h("h2", {}, profile.schedulerName),
      h("div", { class: "wide" }, h("table", { class: "compact weights" }, h("thead", {}, h("tr", {}, ["", "plugin", "weight", "order", "arguments"].map((name) => h("th", {}, name)))),
        h("tbody", {}, (this.known.get(profile.schedulerName) || []).map((each) => this.row(profile, at, each))))))));
    const again = isInside && had.id && document.getElementById(had.id);
    if (again) again.focus();
  }

  /** @param {any} profile @param {number} at @param {any} plugin */
  row(profile, at, plugin) {
    const enabled = pluginsOf(profile), place = enabled.findIndex((each) => each.name === plugin.name), isOn = place >= 0;
    const id = `${at}-${plugin.name}`, change = (/** @type {(plugins: any[]) => any[]} */ to) => this.change(at, to(enabled.map((each) => ({ ...each }))));
    const move = (/** @type {number} */ by) => change((plugins) => { plugins.splice(place + by, 0, ...plugins.splice(place, 1)); return plugins; });
    const arrow = (/** @type {string} */ text, /** @type {number} */ by) => h("button", { type: "button", class: "key", disabled: !isOn || !enabled[place + by], "aria-label": `${plugin.name} ${by < 0 ? "earlier" : "later"}`, on: { click: () => move(by) } }, text);
    return h("tr", { class: isOn ? null : "off" },
      h("td", {}, h("input", { type: "checkbox", id: `on-${id}`, checked: isOn, "aria-label": `${plugin.name} is on`, on: { change: () => change((plugins) => (isOn ? plugins.filter((each) => each.name !== plugin.name) : [...plugins, plugin])) } })),
      h("td", {}, plugin.name),
      h("td", {}, h("input", { type: "number", id: `weight-${id}`, min: 1, max: 100, value: (isOn ? enabled[place] : plugin).weight || 1, disabled: !isOn, "aria-label": `Weight of ${plugin.name}`,
        on: { change: (/** @type {any} */ event) => change((plugins) => { event.target.defaultValue = event.target.value; plugins[place].weight = Number(event.target.value); return plugins; }) } })),
      h("td", { class: "arrows" }, arrow("↑", -1), " ", arrow("↓", 1)),
      h("td", {}, this.args(profile, at, plugin.name)));
  }

  /** The arguments of a plugin, each with a field. @param {any} profile @param {number} at @param {string} name */
  args(profile, at, name) {
    const own = (profile.pluginConfig || []).find((/** @type {any} */ each) => each.name === name);
    const { apiVersion: _, kind: __, ...args } = own ? own.args || {} : /** @type {any} */ ({}), names = Object.keys(args), id = `args-${at}-${name}`;
    if (!names.length) return null;
    return h("details", { id, open: this.unfolded.has(id) }, h("summary", {}, names.join(", ")),
      leavesOf(args).map(([path, value]) => this.argument(at, name, path, value)));
  }

  /** @param {number} at @param {string} name @param {string[]} path @param {any} value */
  argument(at, name, path, value) {
    const label = path.join("."), id = `arg-${at}-${name}-${label}`, words = WORDS.get(label), isText = typeof value === "string";
    const set = (/** @type {any} */ to) => this.argue(at, name, path, to);
    const typed = (/** @type {any} */ event) => {
      event.target.defaultValue = event.target.value;
      if (isText) return set(event.target.value);
      try { set(JSON.parse(event.target.value)); } catch { this.say(`${name}: ${label} must be JSON, such as ${JSON.stringify(value)}`); }
    };
    const field = typeof value === "boolean" ? h("input", { type: "checkbox", id, checked: value, on: { change: (/** @type {any} */ event) => set(event.target.checked) } })
      : words && isText ? h("select", { id, on: { change: (/** @type {any} */ event) => set(event.target.value) } }, [...new Set([...words, value])].map((word) => h("option", { value: word, selected: word === value }, word)))
      : h("input", { type: typeof value === "number" ? "number" : "text", step: "any", id, value: isText ? value : JSON.stringify(value), on: { change: typed } });
    return h("label", { class: "field argument" }, h("span", {}, label), field);
  }

  /** @param {number} at @param {string} name @param {string[]} path @param {any} value */
  argue(at, name, path, value) {
    const told = structuredClone(this.told), own = told.profiles[at].pluginConfig.find((/** @type {any} */ each) => each.name === name);
    const last = /** @type {string} */ (path[path.length - 1]);
    path.slice(0, -1).reduce((inside, step) => inside[step], own.args)[last] = value;
    this.write(told);
  }

  /** Plugins in their order, all others off. @param {number} at @param {any[]} plugins */
  change(at, plugins) {
    const told = structuredClone(this.told);
    told.profiles[at].plugins = { multiPoint: { enabled: plugins, disabled: [{ name: "*" }] } };
    this.write(told);
  }

  /** What the form says now. @param {any} told */
  write(told) {
    this.editor.value = asYaml(told);
    this.told = told;
    this.draw();
    this.later();
  }
}

/** @param {any} profile @returns {any[]} */
const pluginsOf = (profile) => ((profile.plugins || {}).multiPoint || {}).enabled || [];

/** Values that are no objects, with the way to them; a list is one value. @param {any} value @param {string[]} [path] @returns {[string[], any][]} */
const leavesOf = (value, path = []) => (value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value).flatMap(([name, each]) => leavesOf(each, [...path, name])) : [[path, value]]);
