// One pod: a sentence that says why it is where it is, every attempt at it, and each node beside each plugin.

import { refusals, sentence } from "../../shared/decisions.js";
import { counted, fill, h, number } from "../../shared/dom.js";
import { ask, ApiError } from "../api.js";
import { asBytes, asCpu } from "../quantities.js";
import { podRow } from "../reduced.js";
import { address } from "../router.js";
import { ScoreTable } from "../scores.js";

const AGAIN_MS = 1500;
const OFFERED = 500;

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const page = new PodPage(place, visit);
  await page.look();
  return { title: page.name, leave: () => page.leave() };
}

class PodPage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
  constructor(place, visit) {
    const [namespace, name] = visit.params;
    this.namespace = namespace;
    this.name = name;
    this.router = visit.router;
    this.place = place;
    this.query = visit.query;
    this.chosen = visit.query.get("attempt") || "";
    this.asked = visit.query.get("node") || "";
    this.seen = "";
    this.timer = 0;
    this.isGone = false;
    this.remedies = h("div", { id: "remedies" });
  }

  leave() {
    this.isGone = true;
    clearTimeout(this.timer);
  }

  get path() { return `/api/v1/namespaces/${encodeURIComponent(this.namespace)}/pods/${encodeURIComponent(this.name)}`; }

  async look() {
    const fields = encodeURIComponent(`involvedObject.kind=Pod,involvedObject.name=${this.name}`);
    const [pod, attempts, events] = await Promise.all([orNothing(ask(this.path)), attemptsAt(this.namespace, this.name, this.query),
      orNothing(ask(`/api/v1/namespaces/${encodeURIComponent(this.namespace)}/events?fieldSelector=${fields}`))]);
    if (this.isGone) return;
    const seen = JSON.stringify([pod && pod.metadata.resourceVersion, attempts.length, events && events.items.length]);
    if (seen !== this.seen) {
      this.seen = seen;
      this.draw(pod, attempts, events ? events.items : []);
    }
    this.timer = setTimeout(() => this.look().catch(() => {}), AGAIN_MS);
  }

  /** @param {any} pod @param {any[]} attempts @param {any[]} events */
  draw(pod, attempts, events) {
    const row = pod && podRow(pod);
    const place = Math.min(attempts.length, Number(this.chosen) || attempts.length) - 1;
    const attempt = attempts[place];
    this.place.className = "reading";
    fill(this.place,
      h("p", { class: "crumbs" }, h("a", { href: "/ui/cluster" }, "Cluster"), " / ", this.namespace, " / "),
      h("div", { class: "title" }, h("h1", {}, this.name), row && h("span", { class: `phase ${tone(row.state)}` }, row.state), !pod && h("span", { class: "phase plain" }, "no longer there")),
      row && h("p", { class: "identity" }, row.node ? h("span", {}, "on ", h("a", { href: address(["cluster"], [["sel", row.node]]) }, row.node)) : h("span", {}, "on no node"),
        h("span", {}, `asks for ${row.cpu ? asCpu(row.cpu) : "no"} CPU, ${row.memory ? asBytes(row.memory) : "no memory"}`), row.owner && h("span", {}, `of ${row.owner}`),
        h("a", { href: address(["r", "core", "v1", "pods", this.namespace, this.name]) }, "YAML")),
      h("p", { class: "story", id: "why" }, attempt ? sentence({ ...attempt, attempt: place + 1, attempts: attempts.length }) : this.unexplained(row)),
      attempts.length > 1 && h("div", { class: "detail attempts-of" }, h("div", { class: "attempts" }, attempts.map((each, at) => h("button", { type: "button", "aria-pressed": String(at === place),
        on: { click: () => this.choose(at + 1, pod, attempts, events) } }, `attempt ${at + 1} · ${each.step === "0.0" ? each.time : each.step} · ${each.node ? "bound" : "waits"}`)))),
      row && !row.node && h("section", {}, h("h2", {}, "What would it take?"), h("p", {}, h("button", { type: "button", id: "ask-remedies", on: { click: () => this.findRemedies() } }, "Try changes in a copy of the cluster")), this.remedies),
      attempt && attempt.rows.length + attempt.refusals.length > 0 && h("section", { id: "nodes-and-plugins" }, h("h2", {}, "Nodes and plugins", h("small", {}, `${number(attempt.feasible)} of ${counted(attempt.evaluated, "node")} fit`)),
        this.whyNot(attempt), attempt.rows.length > 0 && new ScoreTable(attempt).element, refusals(attempt)),
      attempt && attempt.preemption && h("section", { id: "victims" }, h("h2", {}, "Preemption"), h("p", {}, attempt.preemption)),
      attempt && attempt.traceback && h("section", {}, h("h2", {}, "A plugin raised"), h("pre", {}, attempt.traceback)),
      eventTable(events));
  }

  /** One node by its name: what it was given, or who refused it. @param {any} attempt */
  whyNot(attempt) {
    const names = [...attempt.verdictOf.keys()], told = h("div", { id: "why-not-told", class: "more", "aria-live": "polite" });
    const look = (/** @type {string} */ name) => {
      if (name) this.router.note({ node: name });
      fill(told, name && [wordsOf(attempt, name), " ", h("a", { href: this.onNode(name, attempt) }, "Closer")]);
    };
    const field = h("input", { type: "search", id: "why-not", list: "why-not-names", placeholder: "a node", "aria-label": "Why not this node", value: this.asked, on: { input: (/** @type {any} */ event) => { this.asked = event.target.value.trim(); look(this.asked); } } });
    look(this.asked);
    return h("p", {}, h("label", { class: "row" }, "Why not", field, "?"), h("datalist", { id: "why-not-names" }, names.slice(0, OFFERED).map((name) => h("option", { value: name }))), told);
  }

  /** Where one node is looked at closer. @param {string} node @param {any} attempt */
  onNode(node, attempt) {
    const about = [...this.query].filter(([name]) => name === "run" || name === "kept");
    return address(["pod", this.namespace, this.name, "on", node], [...about, ["attempt", String(attempt.place)]]);
  }

  /** @param {any} row */
  unexplained(row) {
    if (!row) return `Nothing is known of ${this.namespace}/${this.name}.`;
    if (!row.node) return row.why || "No scheduler has tried it yet.";
    return `It is on ${row.node}. Nothing is kept of why: it was tried too long ago, placed by somebody, or there are more than 200 nodes and it found one at once (spec.simulation.explain: Full keeps all).`;
  }

  /** @param {number} number_ @param {any} pod @param {any[]} attempts @param {any[]} events */
  choose(number_, pod, attempts, events) {
    this.chosen = String(number_);
    this.router.note({ attempt: this.chosen });
    this.draw(pod, attempts, events);
  }

  async findRemedies() {
    this.remedies.replaceChildren("Trying …");
    try {
      const { remedies, complete } = await ask(`/simulator/v1/remedies?pod=${encodeURIComponent(`${this.namespace}/${this.name}`)}`);
      const rest = complete ? null : h("p", { class: "more" }, "There was no time to try everything.");
      fill(this.remedies, remedies.length ? h("ul", { class: "checks" }, remedies.map((/** @type {any} */ each) => h("li", {}, h("span", {}, each.text), h("span", { class: "more" }, `then it fits ${each.node}`)))) : h("p", {}, "No single change would place it."), rest);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.remedies.replaceChildren(h("p", { class: "said" }, error.message));
    }
  }
}

/**
 * The attempts at a pod that are kept: of this world, or of the run that the address names.
 * @param {string} namespace @param {string} name @param {Map<string, string>} query @returns {Promise<any[]>}
 */
export async function attemptsAt(namespace, name, query) {
  const part = encodeURIComponent, scenario = query.get("run"), kept = query.get("kept");
  const path = scenario ? `/simulator/v1/scenarios/${part(scenario)}/explain` : kept ? `/simulator/v1/runs/${part(kept)}/explain` : "/simulator/v1/explain";
  const told = await orNothing(ask(`${path}?pod=${part(`${namespace}/${name}`)}`)), times = (told && told.times) || [];
  return (told ? told.attempts : []).map((/** @type {any} */ each, /** @type {number} */ at) => ({ ...digest(each), place: at + 1, time: times[at] ? times[at].slice(11, 19) : "" }));
}

/** What became of a node in an attempt. @param {any} attempt @param {string} name */
export function wordsOf(attempt, name) {
  const own = attempt.verdictOf.get(name), won = attempt.verdictOf.get(attempt.node);
  if (!own) return `${name} was not looked at in this attempt: ${counted(attempt.evaluated, "node")} were, as many as the scheduler examines, or there was no such node.`;
  if (own.rejectedBy) return `${name} was refused by ${own.rejectedBy}: ${own.reasons || "without a reason"}.`;
  if (!won) return `${name} fitted, with ${number(own.total || 0)}.`;
  if (name === attempt.node) return `It went there, with ${number(own.total || 0)}.`;
  const behind = attempt.plugins.map((/** @type {string} */ plugin, /** @type {number} */ at) => ({ plugin, by: ((won.scores || [])[at] || 0) - ((own.scores || [])[at] || 0) })).filter((/** @type {any} */ each) => each.by);
  const parts = behind.sort((/** @type {any} */ a, /** @type {any} */ b) => b.by - a.by).map((/** @type {any} */ each) => `${each.plugin} ${each.by > 0 ? "-" : "+"}${number(Math.abs(each.by))}`);
  return `${name} fitted, with ${number(own.total || 0)}: ${number((won.total || 0) - (own.total || 0))} behind ${attempt.node}${parts.length ? ` (${parts.join(", ")})` : ": as good as the one that was drawn by lot"}.`;
}

/** What is not there is nothing to show; other faults are. @param {Promise<any>} asked */
export async function orNothing(asked) {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ApiError && error.code < 500) return null;
    throw error;
  }
}

/** @param {string} state */
const tone = (state) => (state === "Running" || state === "Succeeded" ? "good" : state === "Failed" || state === "Unschedulable" ? "bad" : "wait");

/** An attempt in the form in which it is drawn: who fitted, and who refused which nodes. @param {any} told */
export function digest(told) {
  const verdicts = told.verdicts || [];
  /** @type {Map<string, {plugin: string, reasons: string, total: number, nodes: string[]}>} */
  const groups = new Map();
  for (const each of verdicts.filter((/** @type {any} */ verdict) => verdict.rejectedBy)) {
    const key = `${each.rejectedBy}\n${each.reasons || ""}`;
    const group = groups.get(key) || { plugin: each.rejectedBy, reasons: each.reasons || "", total: 0, nodes: [] };
    group.total++;
    if (group.nodes.length < 60) group.nodes.push(each.node);
    groups.set(key, group);
  }
  const victims = (told.preemption && told.preemption.victims) || [];
  const preemption = !told.preemption ? "" : victims.length ? `${victims.join(", ")} had to leave ${told.preemption.node}` : told.preemption.message || "nobody could make room";
  return { ...told, evaluated: told.evaluated || 0, feasible: told.feasible || 0, plugins: told.plugins || [], weights: told.weights || [], nominated: (told.preemption || {}).node || "",
    verdictOf: new Map(verdicts.map((/** @type {any} */ each) => [each.node, each])), rows: verdicts.filter((/** @type {any} */ verdict) => !verdict.rejectedBy), refusals: [...groups.values()].sort((a, b) => b.total - a.total), preemption };
}

/** @param {any[]} events */
function eventTable(events) {
  if (!events.length) return null;
  const when = (/** @type {any} */ each) => each.lastTimestamp || each.eventTime || each.metadata.creationTimestamp || "";
  const rows = [...events].sort((a, b) => (when(a) < when(b) ? -1 : 1));
  return h("section", {}, h("h2", {}, "Events"), h("div", { class: "wide" }, h("table", { class: "compact" }, h("thead", {}, h("tr", {}, ["when", "type", "reason", "from", "message"].map((each) => h("th", {}, each)))),
    h("tbody", {}, rows.map((each) => h("tr", {}, h("td", { class: "when" }, when(each)), h("td", {}, each.type || ""), h("td", {}, each.reason || ""), h("td", {}, each.reportingComponent || (each.source || {}).component || ""), h("td", {}, `${each.message || ""}${(each.count || 0) > 1 ? ` (${each.count} times)` : ""}`)))))));
}
