// The cluster as the page holds it: nodes with their pods, kept up to date by a worker.

import { identity } from "./api.js";
import { rowsOf, takesRoom } from "./reduced.js";

/** @typedef {import("./reduced.js").NodeRow} NodeRow @typedef {import("./reduced.js").PodRow} PodRow */
/** @typedef {NodeRow & {on: Map<string, PodRow>, usedCpu: number, usedMemory: number}} Node */

const WORKER = "/ui/static/app/world.worker.js";

/** @type {{createScriptURL: (url: string) => any} | undefined} */
let policy;

/** The one address that may become a script of its own. */
function workerUrl() {
  const trusted = /** @type {any} */ (globalThis).trustedTypes;
  if (!trusted) return WORKER;
  policy ??= trusted.createPolicy("kubescene", { createScriptURL: (/** @type {string} */ url) => {
    if (url !== WORKER) throw new TypeError(`${url} is no script of ours`);
    return url;
  } });
  return /** @type {any} */ (policy).createScriptURL(WORKER);
}

/** Rows by key; who has changed is told once a batch. */
export class World extends EventTarget {
  constructor() {
    super();
    /** @type {Map<string, Node>} */
    this.nodes = new Map();
    /** @type {Map<string, PodRow>} */
    this.pods = new Map();
    /** @type {Map<string, Map<string, PodRow>>} pods by the names of their nodes */
    this.placed = new Map();
    /** @type {Map<string, PodRow>} pods that no node has */
    this.waiting = new Map();
    this.known = { nodes: false, pods: false };
    /** @type {{nodes: Set<string> | null, pods: Set<string> | null}} keys of a list that comes in parts, where others may be held */
    this.listed = { nodes: null, pods: null };
  }

  /** Whether there is something to show: pods may still be coming. */
  get isThere() { return this.known.nodes; }

  /** Begin to follow the server. */
  start() {
    const worker = new Worker(workerUrl(), { type: "module" });
    const tell = () => worker.postMessage({ token: identity.token });
    worker.onmessage = ({ data }) => {
      if (data.type === "unknown") identity.renew && identity.renew(data.token).then(tell);
      else this.take(data);
    };
    tell();
    return () => worker.terminate();
  }

  /** @param {any} told */
  take(told) {
    /** @type {Set<string>} */
    const touched = new Set();
    if (told.type === "all") {
      const kind = /** @type {"nodes" | "pods"} */ (told.kind);
      const { isFirst = true, isLast = true } = told, rows = told.columns ? rowsOf(told.columns) : told.rows;
      if (isFirst) this.listed[kind] = this[kind].size ? new Set() : null;
      const listed = this.listed[kind];
      for (const row of rows) {
        if (listed) listed.add(row.key);
        this.put(kind, row.key, row, touched);
      }
      if (isLast && listed) for (const key of [...this[kind].keys()]) if (!listed.has(key)) this.put(kind, key, null, touched);
      this.known[kind] ||= isLast;
      this.dispatchEvent(new CustomEvent("changed", { detail: { nodes: touched, isAll: isLast } }));
      return;
    }
    const before = this.nodes.size;
    let isNew = false;
    for (const [key, row] of told.nodes) {
      isNew ||= !this.nodes.has(key) || row === null;
      this.put("nodes", key, row, touched);
    }
    for (const [key, row] of told.pods) this.put("pods", key, row, touched);
    this.dispatchEvent(new CustomEvent("changed", { detail: { nodes: touched, isAll: isNew || before !== this.nodes.size } }));
  }

  /** @param {"nodes" | "pods"} kind @param {string} key @param {any} row @param {Set<string>} touched */
  put(kind, key, row, touched) {
    if (kind === "nodes") this.putNode(key, row, touched);
    else this.putPod(key, row, touched);
  }

  /** @param {string} key @param {NodeRow | null} row @param {Set<string>} touched */
  putNode(key, row, touched) {
    touched.add(key);
    const known = this.nodes.get(key);
    if (!row) this.nodes.delete(key);
    else if (known) Object.assign(known, row);
    else {
      const node = { ...row, on: this.podsOn(key), usedCpu: 0, usedMemory: 0 };
      this.nodes.set(key, node);
      for (const pod of node.on.values()) weigh(node, pod, 1);
    }
  }

  /** @param {string} key @param {PodRow | null} row @param {Set<string>} touched */
  putPod(key, row, touched) {
    const known = this.pods.get(key);
    if (known) this.part(known, touched);
    if (!row) return;
    this.pods.set(key, row);
    if (!row.node) {
      this.waiting.set(key, row);
      return;
    }
    this.podsOn(row.node).set(key, row);
    const node = this.nodes.get(row.node);
    if (!node) return;
    weigh(node, row, 1);
    touched.add(row.node);
  }

  /** @param {PodRow} pod @param {Set<string>} touched */
  part(pod, touched) {
    this.pods.delete(pod.key);
    this.waiting.delete(pod.key);
    const on = this.placed.get(pod.node), node = this.nodes.get(pod.node);
    if (on) on.delete(pod.key);
    if (node) {
      weigh(node, pod, -1);
      touched.add(pod.node);
    } else if (on && !on.size) this.placed.delete(pod.node);
  }

  /** The pods of a node, also of one that is not known, or not yet. @param {string} name */
  podsOn(name) {
    let on = this.placed.get(name);
    if (!on) this.placed.set(name, on = new Map());
    return on;
  }

  /** Who waits, by reason, the most first. @returns {[string, PodRow[]][]} */
  reasons() {
    /** @type {Map<string, PodRow[]>} */
    const found = new Map();
    for (const pod of this.waiting.values()) {
      const why = pod.why || (pod.state === "Pending" ? "not tried yet" : pod.state);
      const among = found.get(why);
      if (among) among.push(pod);
      else found.set(why, [pod]);
    }
    return [...found].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  }
}

/** @param {Node} node @param {PodRow} pod @param {1 | -1} way it comes or goes */
function weigh(node, pod, way) {
  if (!takesRoom(pod)) return;
  node.usedCpu += way * pod.cpu;
  node.usedMemory += way * pod.memory;
}

/** How full a node is: the fuller of CPU and memory, in percent. @param {Node} node */
export function fullness(node) {
  const cpu = node.cpu ? node.usedCpu / node.cpu : 0;
  const memory = node.memory ? node.usedMemory / node.memory : 0;
  return 100 * Math.max(cpu, memory);
}

/** What keeps pods away from a node; empty if nothing does. @param {NodeRow} node */
export function mark(node) {
  if (node.ready === "Unknown") return "unreachable";
  if (node.ready === "False") return "not ready";
  if (node.cordoned) return "cordoned";
  return node.ready === "" || node.taints.some((each) => each.startsWith("node.kubernetes.io/not-ready")) ? "starting" : "";
}
