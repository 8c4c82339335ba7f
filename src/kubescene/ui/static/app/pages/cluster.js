// The cluster: who waits and why first, then nodes as tiles filled by their pods; the choice at the side.

import { ramp } from "../../shared/colours.js";
import { bar, byId, counted, fill, h, number, percent, refill } from "../../shared/dom.js";
import { filterOf } from "../filter.js";
import { asBytes, asCpu } from "../quantities.js";
import { STATES } from "../reduced.js";
import { address } from "../router.js";
import { Tiles, WHEEL } from "../tiles.js";
import { toast } from "../toasts.js";
import { fullness, mark, World } from "../world.js";

/** @typedef {import("../world.js").Node} Node @typedef {import("../reduced.js").PodRow} PodRow */

const STATE_COLOURS = new Map([["Running", "#009e73"], ["Bound", "#009e73"], ["Starting", "#56b4e9"], ["Pending", "#e69f00"], ["Unschedulable", "#d55e00"],
  ["Failed", "#d55e00"], ["Terminating", "#cc79a7"], ["Succeeded", "#8a95a1"]]);
const LISTED = 200;
const REASONS = 6;
const GROUPS = [["", "no groups"], ["topology.kubernetes.io/zone", "zone"], ["node.kubernetes.io/instance-type", "instance type"]];
const COLOURS = [["state", "state of pods"], ["fullness", "how full nodes are"], ["owner", "owner"], ["namespace", "namespace"]];

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export function show(place, visit) {
  const world = new World();
  const view = new ClusterView(place, visit, world);
  place.className = "cluster";
  const end = world.start();
  return { title: "Cluster", leave: () => { end(); view.leave(); }, changed: (/** @type {Map<string, string>} */ query) => view.chosen(query) };
}

/** A world as it is now, or as it was: whoever fills it says that it has changed. */
export class ClusterView {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit @param {World} world @param {Record<string, string>} [about] what a page of a pod is told of the run */
  constructor(place, { router, query }, world, about = {}) {
    this.router = router;
    this.world = world;
    this.about = about;
    this.color = query.get("color") || "state";
    this.group = query.get("group") || "";
    this.text = query.get("q") || "";
    this.selection = query.get("sel") || "";
    this.told = h("div", { id: "tile-told", class: "told", "aria-live": "polite" }, "Looking at the cluster …");
    this.legend = h("div", { class: "legend", id: "legend" });
    this.strip = h("div", { id: "waiting", class: "strip" });
    this.side = h("aside", { id: "side", "aria-label": "What is chosen" });
    this.map = h("div", { class: "map" });
    this.tip = h("div", { id: "tip", hidden: true });
    place.append(this.controls(), this.strip, h("div", { class: "split" }, h("div", { class: "mapping" }, this.map, this.told), this.side), this.tip);
    this.tiles = new Tiles(this.map, { chosen: (name) => this.select(name), pointed: (node, event) => this.point(node, event) });
    this.tiles.canvas.addEventListener("coarse", () => toast("Pictures take long here: the map is drawn five times a second, and coarse while it moves."));
    this.world.addEventListener("changed", (event) => this.changed(/** @type {CustomEvent} */ (event).detail));
    this.themed = () => this.recolour();
    addEventListener("themed", this.themed);
    this.isArranged = false;
  }

  leave() {
    this.tiles.leave();
    removeEventListener("themed", this.themed);
  }

  controls() {
    const choice = (/** @type {string} */ name, /** @type {string[][]} */ options, /** @type {string} */ given, /** @type {(value: string) => void} */ chosen) =>
      h("label", {}, name, h("select", { id: `by-${name}`, on: { change: (/** @type {any} */ event) => chosen(event.target.value) } },
        options.map(([value, text]) => h("option", { value, selected: value === given }, text))));
    const labelled = (/** @type {string[][]} */ options, /** @type {string} */ given) => options.some(([value]) => value === given) ? options : [...options, [given, given.replace(/^label:/, "")]];
    this.find = h("input", { type: "search", id: "filter", placeholder: "filter: app=web ns=default !state=Running", "aria-label": "Filter nodes and pods",
      value: this.text, on: { input: (/** @type {any} */ event) => this.filter(event.target.value) } });
    this.grouping = choice("group", labelled(GROUPS, this.group), this.group, (value) => { this.group = value; this.router.note({ group: value }, { push: true }); this.arrange(); });
    this.colouring = choice("colour", labelled(COLOURS, this.color), this.color, (value) => { this.color = value; this.router.note({ color: value === "state" ? "" : value }, { push: true }); this.recolour(); });
    return h("div", { class: "controls" }, this.colouring, this.grouping, this.find,
      h("span", { class: "zoom" }, h("button", { type: "button", title: "Smaller tiles (-)", "aria-label": "Smaller tiles", on: { click: () => this.tiles.zoomBy(-1) } }, "−"),
        h("button", { type: "button", title: "Larger tiles (+)", "aria-label": "Larger tiles", on: { click: () => this.tiles.zoomBy(1) } }, "+")), this.legend);
  }

  /** Another address of this page. @param {Map<string, string>} query */
  chosen(query) {
    this.color = query.get("color") || "state";
    this.group = query.get("group") || "";
    this.text = query.get("q") || "";
    this.selection = query.get("sel") || "";
    /** @type {any} */ (byId("by-colour")).value = this.color;
    /** @type {any} */ (byId("by-group")).value = this.group;
    /** @type {any} */ (this.find).value = this.text;
    this.arrange();
  }

  /** @param {{nodes: Set<string>, isAll: boolean}} what */
  changed(what) {
    if (!this.world.isThere) return;
    if (!this.isArranged || what.isAll) this.arrange();
    else this.tiles.touch(what.nodes);
    this.later ||= requestAnimationFrame(() => { this.later = 0; this.tellAll(); });
  }

  arrange() {
    this.isArranged = true;
    const names = new Intl.Collator("en", { numeric: true });
    const nodes = [...this.world.nodes.values()].sort((a, b) => names.compare(a.name, b.name));
    /** @type {Map<string, Node[]>} */
    const groups = new Map();
    for (const node of nodes) {
      const name = this.group ? (Object.hasOwn(node.labels, this.group) ? node.labels[this.group] : `no ${this.group}`) : "";
      const among = groups.get(name);
      if (among) among.push(node);
      else groups.set(name, [node]);
    }
    const sorted = [...groups].sort((a, b) => names.compare(a[0], b[0]));
    this.tiles.selected = this.selection;
    this.offerLabels(nodes);
    this.paint();
    this.sift(this.text);
    this.tiles.show(sorted.flatMap(([, members]) => members), sorted.map(([name, members]) => ({ name, count: members.length })));
    this.tellAll();
  }

  /** Labels of nodes are offered for grouping, those of pods for colours. @param {Node[]} nodes */
  offerLabels(nodes) {
    const keys = new Set(nodes.slice(0, 500).flatMap((node) => Object.keys(node.labels)));
    const known = new Set([...GROUPS.map(([value]) => value), this.group, "kubernetes.io/hostname"]);
    const more = [...keys].filter((key) => !known.has(key)).sort();
    const among = [...this.world.pods.values()].slice(0, 2000);
    const podKeys = [...new Set(among.flatMap((pod) => Object.keys(pod.labels)))].filter((key) => !/hash|uid|generation|index|name$/.test(key)).sort();
    const offer = (/** @type {string} */ id, /** @type {string[][]} */ options) => {
      const select = /** @type {HTMLSelectElement} */ (byId(id));
      const have = new Set([...select.options].map((option) => option.value));
      for (const [value, text] of options) if (!have.has(value)) select.append(h("option", { value }, text));
    };
    offer("by-group", more.map((key) => [key, key]));
    offer("by-colour", podKeys.map((key) => [`label:${key}`, `label ${key}`]));
  }

  /** @param {string} text */
  filter(text) {
    this.pointed = null;
    this.router.note({ q: text });
    this.sift(text);
    this.tiles.redraw();
    if (this.isArranged) this.tellAll();
  }

  /** What a filter keeps from now on. @param {string} text */
  sift(text) {
    this.text = text;
    const keeps = filterOf(text);
    const podKeeps = (/** @type {PodRow} */ pod) => keeps(subjectOfPod(pod));
    this.tiles.keeps = text.trim() ? (node) => keeps(subjectOfNode(node)) || [...node.on.values()].some(podKeeps) : () => true;
    this.podKeeps = text.trim() ? podKeeps : () => true;
  }

  recolour() {
    this.paint();
    this.tiles.redraw();
    this.tellLegend();
  }

  /** Which colours pods have from now on. */
  paint() {
    const of = this.valueOf();
    if (!of) this.tiles.podColours = null;
    else {
      const names = this.color === "state" ? STATE_COLOURS : wheel(this.counts(of));
      this.tiles.podColours = { names, of };
    }
  }

  /** What of a pod its colour says; null where tiles are coloured by how full they are. */
  valueOf() {
    if (this.color === "fullness") return null;
    if (this.color === "state") return (/** @type {PodRow} */ pod) => pod.state;
    if (this.color === "namespace") return (/** @type {PodRow} */ pod) => pod.namespace;
    if (this.color === "owner") return (/** @type {PodRow} */ pod) => pod.owner.replace(/^ReplicaSet\/(.*)-[a-z0-9]+$/, "$1").replace(/^\w+\//, "") || "none";
    const key = this.color.slice("label:".length);
    return (/** @type {PodRow} */ pod) => (Object.hasOwn(pod.labels, key) ? pod.labels[key] : "none");
  }

  /** @param {(pod: PodRow) => string} of @returns {[string, number][]} */
  counts(of) {
    /** @type {Map<string, number>} */
    const found = new Map();
    for (const pod of this.world.pods.values()) {
      const value = of(pod);
      found.set(value, (found.get(value) || 0) + 1);
    }
    return [...found].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }

  tellLegend() {
    const of = this.valueOf();
    if (!of) {
      const steps = [0, 25, 50, 75, 100].map((share) => h("span", {}, swatch(ramp(share)), `${share} %`));
      refill(this.legend, "fullness", () => [steps, h("span", {}, swatch("#d55e00"), "over")]);
      return;
    }
    const counts = this.counts(of);
    if (this.color === "state") counts.sort((a, b) => STATES.indexOf(a[0]) - STATES.indexOf(b[0]));
    const shown = counts.slice(0, WHEEL.length);
    const names = /** @type {import("../tiles.js").PodColours} */ (this.tiles.podColours).names;
    const rest = counts.slice(WHEEL.length).reduce((sum, [, count]) => sum + count, 0);
    const field = this.color === "state" ? "state" : this.color === "namespace" ? "ns" : this.color === "owner" ? "" : this.color.slice("label:".length);
    refill(this.legend, [this.color, counts], () => [shown.map(([name, count]) => h("button", { type: "button", class: "key", title: "Show only these",
      on: { click: () => this.setFilter(field ? `${field}=${name}` : name) } }, swatch(names.get(name) || "#8a95a1"), `${name} ${number(count)}`)),
      rest > 0 && h("span", {}, swatch("#8a95a1"), `other ${number(rest)}`)]);
  }

  /** @param {string} text */
  setFilter(text) {
    /** @type {any} */ (this.find).value = this.text === text ? "" : text;
    this.filter(this.text === text ? "" : text);
  }

  tellAll() {
    this.tellWaiting();
    this.tellLegend();
    this.tellSide();
    const { nodes, pods } = this.world;
    if (!nodes.size && !pods.size) {
      if (!this.world.known.pods) return;
      fill(this.told, "Nothing here yet. ", h("a", { href: "/ui" }, "Play an example, or bring a file"), ".");
      return;
    }
    const cpu = sum(nodes.values(), (node) => node.cpu), used = sum(nodes.values(), (node) => node.usedCpu);
    const memory = sum(nodes.values(), (node) => node.memory), usedMemory = sum(nodes.values(), (node) => node.usedMemory);
    const parts = [counted(nodes.size, "node"), `${counted(pods.size, "pod")}${this.world.known.pods ? "" : " so far"}`, `CPU ${percent(cpu ? (100 * used) / cpu : 0)} requested`, `memory ${percent(memory ? (100 * usedMemory) / memory : 0)}`];
    if (this.text.trim()) parts.push(((kept) => `${counted(kept, "node")} match${kept === 1 ? "es" : ""}`)(this.tiles.order.filter(this.tiles.keeps).length));
    if (!this.pointed) fill(this.told, parts.join("  ·  "));
  }

  tellWaiting() {
    const reasons = this.world.reasons();
    const count = this.world.waiting.size;
    this.strip.hidden = !count;
    if (!count) return;
    refill(this.strip, [count, this.selection, ...reasons.map(([why, pods]) => [why, pods.length])], () => [h("b", {}, `${counted(count, "pod")} wait${count === 1 ? "s" : ""}`),
      ...reasons.slice(0, REASONS).map(([why, pods]) => h("button", { type: "button", class: "reason", "aria-pressed": String(this.selection === `why:${why}`),
        on: { click: () => this.select(this.selection === `why:${why}` ? "" : `why:${why}`) } }, h("b", {}, number(pods.length)), `: ${shortly(why)}`)),
      reasons.length > REASONS && h("span", { class: "more" }, `and ${number(reasons.length - REASONS)} more reasons`)]);
  }

  /** @param {string} selection a node, `why:` and a reason, or nothing */
  select(selection) {
    this.selection = selection;
    this.tiles.selected = selection;
    this.router.note({ sel: selection }, { push: true });
    this.tiles.redraw();
    this.tellWaiting();
    this.tellSide();
  }

  tellSide() {
    const node = this.world.nodes.get(this.selection);
    const why = this.selection.startsWith("why:") ? this.selection.slice(4) : null;
    const pods = why === null ? null : this.world.reasons().find(([reason]) => reason === why);
    this.side.hidden = !node && !pods;
    const close = h("button", { type: "button", class: "close", "aria-label": "Close", on: { click: () => this.select("") } }, "×");
    const podsTold = (/** @type {Iterable<PodRow>} */ rows) => [...rows].map((pod) => [pod.key, pod.state]);
    if (node) refill(this.side, [{ ...node, on: podsTold(node.on.values()) }, this.text], () => [close, this.nodeTold(node)]);
    else if (pods) refill(this.side, [this.selection, podsTold(pods[1])], () => [close, h("h2", {}, counted(pods[1].length, "waiting pod")), h("p", { class: "message" }, pods[0]), this.podList(pods[1])]);
    this.side.setAttribute("aria-label", node ? `Node ${node.name}` : "Pods that wait");
  }

  /** @param {Node} node */
  nodeTold(node) {
    const why = mark(node), row = (/** @type {string} */ name, /** @type {number} */ used, /** @type {number} */ all, /** @type {(n: number) => string} */ as) =>
      h("div", { class: "use" }, h("span", {}, name), bar(all ? (100 * used) / all : 0, used > all ? "bad" : ""), h("span", {}, `${as(used)} of ${as(all)}`));
    const pods = [...node.on.values()].filter(/** @type {any} */ (this.podKeeps)).sort((a, b) => b.cpu - a.cpu || (a.key < b.key ? -1 : 1));
    return [
      h("h2", {}, h("a", { href: address(["r", "core", "v1", "nodes", "-", node.name]) }, node.name), why && h("span", { class: "tag waits" }, why)),
      row("cpu", node.usedCpu, node.cpu, asCpu), row("memory", node.usedMemory, node.memory, asBytes), row("pods", node.on.size, node.pods, number),
      node.taints.length ? [h("h3", {}, "Taints"), h("ul", { class: "plain mono" }, node.taints.map((taint) => h("li", {}, taint)))] : null,
      h("h3", {}, counted(pods.length, "pod")), this.podList(pods),
      h("h3", {}, "Labels"), h("ul", { class: "plain mono labels" }, Object.entries(node.labels).map(([key, value]) => h("li", {}, h("button", { type: "button", class: "key", title: "Show only these",
        on: { click: () => this.setFilter(`${key}=${value}`) } }, `${key}=${value}`)))),
    ].flat().filter((each) => each !== null);
  }

  /** @param {PodRow[]} pods */
  podList(pods) {
    const rows = pods.slice(0, LISTED).map((pod) => h("tr", {}, h("td", {}, swatch(STATE_COLOURS.get(pod.state) || "#8a95a1"), h("a", { href: address(["pod", pod.namespace, pod.name], Object.entries(this.about)) }, pod.name)),
      h("td", {}, pod.namespace), h("td", { class: "n" }, asCpu(pod.cpu)), h("td", { class: "n" }, asBytes(pod.memory))));
    return h("div", { class: "wide" }, h("table", { class: "compact" }, h("thead", {}, h("tr", {}, h("th", {}, "pod"), h("th", {}, "namespace"), h("th", { class: "n" }, "cpu"), h("th", { class: "n" }, "memory"))), h("tbody", {}, rows)),
      pods.length > LISTED && h("p", { class: "more" }, `and ${number(pods.length - LISTED)} more`));
  }

  /** @param {Node | null} node @param {MouseEvent | null} event */
  point(node, event) {
    this.pointed = node;
    this.tip.hidden = !node || !event;
    if (!node) {
      this.tellAll();
      return;
    }
    const lines = [`cpu ${asCpu(node.usedCpu)} of ${asCpu(node.cpu)}, memory ${asBytes(node.usedMemory)} of ${asBytes(node.memory)}`, counted(node.on.size, "pod"), mark(node)].filter(Boolean);
    fill(this.told, `${node.name}: ${percent(fullness(node))}, ${lines.join(", ")}`);
    if (!event) return;
    fill(this.tip, h("b", {}, node.name), ...lines.map((line) => h("div", {}, line)));
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    this.tip.style.left = `${Math.max(4, Math.min(innerWidth - width - 8, event.clientX + 14))}px`;
    this.tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
  }
}

/** @param {string} colour */
function swatch(colour) {
  const element = h("i", { class: "swatch" });
  element.style.background = colour;
  return element;
}

/** @param {[string, number][]} counts @returns {Map<string, string>} */
const wheel = (counts) => new Map(counts.slice(0, WHEEL.length).map(([name], place) => [name, WHEEL[place]]));

/** @param {Iterable<Node>} rows @param {(row: Node) => number} of */
function sum(rows, of) {
  let all = 0;
  for (const row of rows) all += of(row);
  return all;
}

/** The reasons of a message without its beginning. @param {string} why */
function shortly(why) {
  const told = why.replace(/^\d+\/\d+ nodes are available: /, "").replace(/ preemption: .*$/, "").replace(/ no new claims to deallocate,?/, "");
  return told.length > 90 ? `${told.slice(0, 88)}…` : told;
}

/** @param {Node} node @returns {import("../filter.js").Subject} */
const subjectOfNode = (node) => ({ text: node.name, fields: { node: node.name, name: node.name, state: mark(node) || "ready" }, labels: node.labels });

/** @param {PodRow} pod @returns {import("../filter.js").Subject} */
const subjectOfPod = (pod) => ({ text: `${pod.key} ${pod.owner}`, fields: { ns: pod.namespace, namespace: pod.namespace, node: pod.node, name: pod.name, state: pod.state }, labels: pod.labels });
