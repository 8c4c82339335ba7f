// What can be played from here: a fork with a change, step by step, and more for a Scenario that waits.

import { fill, h, number } from "../shared/dom.js";
import { ask, ApiError } from "./api.js";
import { SCENARIOS } from "./bringing.js";
import { Editor } from "./editor.js";
import { add, after, asName, asText, create, freeName, isEnded, operationsOf, read, stillToCome, upTo } from "./forks.js";
import { address } from "./router.js";
import { toast } from "./toasts.js";

const MORE = (/** @type {number} */ step) => `- id: more
  step: ${step}
  createOperation:
    object:
      apiVersion: v1
      kind: Pod
      metadata: {name: another}
      spec:
        containers:
        - {name: main, image: app, resources: {requests: {cpu: "1"}}}
`;

/** The panel below the slider, and the buttons that open it. `scenario` is what is played, `phase` where it stands. */
export class Playing {
  /** @param {import("./router.js").Router} router @param {() => void} left called before the Scenario that is shown goes */
  constructor(router, left) {
    this.router = router;
    this.left = left;
    /** @type {any} */
    this.scenario = null;
    this.phase = "";
    this.isHeld = false;
    this.step = 0;
    this.shown = "";
    this.buttons = h("span", { class: "row tight", id: "playing" });
    this.panel = h("section", { id: "fork", hidden: true, "aria-label": "Play on" });
  }

  /** @param {any} scenario the object, or what a run says was played @param {string} phase @param {boolean} isHeld */
  show(scenario, phase, isHeld) {
    this.scenario = scenario;
    this.phase = phase;
    this.isHeld = isHeld;
    const rest = phase === "Paused" ? stillToCome(scenario).length : 0, told = `${phase} ${isHeld} ${rest}`;
    if (this.shown === told) return;
    this.shown = told;
    const button = (/** @type {string} */ id, /** @type {string} */ text, /** @type {string} */ what, /** @type {() => void} */ does) => h("button", { type: "button", id, title: what, on: { click: () => this.tried(does) } }, text);
    fill(this.buttons,
      phase === "Running" && button("hold", isHeld ? "Go on" : "Pause", "Stand still between two moments", () => this.hold()),
      rest > 0 && [button("next-step", "Next step", "Play the operations of the next step, then wait", () => this.goOn(1)), button("go-on", `Go on (${number(rest)} to come)`, "Play all that is left", () => this.goOn(Infinity))],
      phase === "Paused" && [button("back", "Back one step", "The same without its last step: played again, to the same bytes", () => this.back()), button("add", "Add operations …", "Write what happens next", () => this.open("add")), !isEnded(operationsOf(scenario.spec)[1]) && !rest && button("end", "End it", "No more is to come: the world is free again", () => this.end())],
      phase !== "Running" && button("fork-here", "Fork from here …", "The same up to this step, then something else", () => this.open("fork")),
      ["Succeeded", "Failed"].includes(phase) && [button("again", "Play again", "The same once more, under another name", () => this.again(Infinity)), button("by-steps", "Step by step", "The same once more; it waits after each step", () => this.again(this.firstStep()))]);
  }

  firstStep() { return Math.min(...operationsOf(this.scenario.spec)[1].map((/** @type {any} */ each) => each.step)); }

  lastStep() { return Math.max(0, ...operationsOf(this.scenario.spec)[1].map((/** @type {any} */ each) => each.step)); }

  /** What goes wrong is said where it is seen. @param {() => any} does */
  async tried(does) {
    try {
      await does();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const causes = ((error.status && error.status.details) || {}).causes || [];
      const text = causes.length > 1 ? `${error.message}\n${causes.map((/** @type {any} */ each) => `${each.field}: ${each.message}`).join("\n")}` : error.message;
      if (this.panel.hidden || !this.said) toast(text, true);
      else {
        this.said.className = "said";
        this.said.textContent = text;
      }
    }
  }

  /** The object as it is now: what is shown may be a moment old. */
  async refreshed() {
    this.scenario = await ask(`${SCENARIOS}/${encodeURIComponent(this.scenario.metadata.name)}`);
  }

  hold() { return ask(`/simulator/v1/scenarios/${encodeURIComponent(this.scenario.metadata.name)}/${this.isHeld ? "release" : "hold"}`, { method: "POST" }); }

  /** @param {"fork" | "add"} what */
  open(what) {
    const isFork = what === "fork", [, operations] = operationsOf(this.scenario.spec);
    const step = isFork ? Math.max(0, this.step) : this.lastStep();
    const all = [...operations, ...stillToCome(this.scenario)], rest = after(all, step);
    const text = isFork ? asText(rest) || MORE(step + 1) : MORE(step + 1);
    const field = new Editor({ id: "fork-text", name: "Operations that follow", value: text });
    this.said = h("div", { id: "fork-said", role: "alert" });
    const button = (/** @type {string} */ id, /** @type {string} */ name, /** @type {boolean} */ isFirst, /** @type {() => any} */ does) => h("button", { type: "button", id, class: isFirst && "primary", on: { click: () => this.tried(does) } }, name);
    fill(this.panel, h("h2", {}, isFork ? `Play on from step ${number(step)}, with a change` : "What happens next"),
      h("p", { class: "more" }, isFork ? `What was played up to step ${number(step)} is played again, to the same bytes. Then comes what you write here.` : "It goes on by itself once there is more to play, and waits again unless a doneOperation is among it."),
      this.said, field.element, h("p", { class: "row" },
        isFork ? [button("fork-all", "Play on", true, () => this.fork(field.value, step, Infinity)), button("fork-step", "Play one step, then wait", false, () => this.fork(field.value, step, step + 1))] : button("add-all", "Play on", true, () => this.addText(field.value)),
        h("button", { type: "button", on: { click: () => this.close() } }, "Leave it")));
    this.panel.hidden = false;
    field.field.focus();
  }

  close() { this.panel.hidden = true; }

  /** @param {string} text @param {number} step @param {number} until */
  async fork(text, step, until) {
    const first = upTo(operationsOf(this.scenario.spec)[1], step);
    const made = await read(this.scenario, await freeName(asName(this.scenario.metadata.name)), first, text);
    await this.letGo();
    const rest = after(operationsOf(made.spec)[1], step).map((/** @type {any} */ each) => each.step);
    await this.begin(made, until === Infinity ? until : Math.min(...rest));
  }

  /** @param {string} text */
  async addText(text) {
    await this.refreshed();
    const made = await read(this.scenario, `${asName(this.scenario.metadata.name)}-more`, [], text);
    await add(this.scenario, operationsOf(made.spec)[1], stillToCome(this.scenario));
    this.close();
  }

  /** Give it the operations of so many steps of those that are to come. @param {number} steps */
  async goOn(steps) {
    await this.refreshed();
    const rest = stillToCome(this.scenario), next = [...new Set(rest.map((each) => each.step))].sort((a, b) => a - b)[steps - 1] ?? Infinity;
    await add(this.scenario, upTo(rest, next), after(rest, next));
  }

  async end() {
    await this.refreshed();
    const last = this.lastStep() + 1, [field] = operationsOf(this.scenario.spec);
    await add(this.scenario, [field === "events" ? { id: `done-${last}`, step: last, operation: "Done", doneOperation: {} } : { id: `done-${last}`, step: last, doneOperation: {} }], []);
  }

  /** The same up to a step, once more; the world is free for it. @param {number} until */
  async again(until) {
    const { apiVersion, kind, metadata, spec } = this.scenario;
    await this.begin({ apiVersion, kind, metadata: { name: await freeName(asName(metadata.name)), labels: metadata.labels }, spec }, until);
  }

  /** One step less: its last one is to come again. */
  async back() {
    await this.refreshed();
    const [field, operations] = operationsOf(this.scenario.spec), step = this.lastStep() - 1;
    const { apiVersion, kind, metadata } = this.scenario, all = [...operations, ...stillToCome(this.scenario)];
    this.left();
    await ask(`${SCENARIOS}/${encodeURIComponent(metadata.name)}`, { method: "DELETE" });
    await this.begin({ apiVersion, kind, metadata: { name: metadata.name, labels: metadata.labels }, spec: { ...this.scenario.spec, [field]: all } }, step);
  }

  /** Whoever waits holds the world: another one is not played before it has ended. */
  async letGo() {
    if (this.phase === "Paused") await this.end();
  }

  /** @param {any} made @param {number} until */
  async begin(made, until) {
    const created = await create(made, until), here = address(["scenario", created.metadata.name]);
    this.router.path = "";
    await this.router.go(here);
  }
}
