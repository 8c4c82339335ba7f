// The facts of a run, folded into a world that can be seen at any moment, forwards and backwards.

import { nodeRow, podRow } from "./reduced.js";

/**
 * @typedef {{kind: "nodes" | "pods", key: string, row: any, before: any}} Change
 * @typedef {{actor: string, text: string, href?: string[], isBad?: boolean}} Line
 * @typedef {{major: number, minor: number, time: number, changes: Change[], lines: Line[], bound: number, failed: number, gone: number}} Moment
 */

const WORDS = new Map([["ObjectCreated", "created"], ["ObjectPatched", "changed"], ["ObjectDeleted", "deleted"]]);
const LISTED = 300;

export class Story {
  /** @param {import("./world.js").World} world what is shown; it is at `at` */
  constructor(world) {
    this.world = world;
    world.known = { nodes: true, pods: true };
    /** @type {Moment[]} */
    this.moments = [];
    this.at = -1;
    /** @type {Map<string, any>} the rows after the last fact that was read */
    this.rows = new Map();
    /** @type {{place: number, outcomes: any[]}[]} what was expected, as often as it was looked at */
    this.judged = [];
    this.phase = "";
  }

  get began() { return this.moments.length ? this.moments[0].time : 0; }

  /** Take in the next fact. @param {any} fact */
  read(fact) {
    if (!fact.fact) return;
    if (fact.fact === "ScenarioEnded") this.phase = fact.phase;
    const moment = this.momentOf(fact);
    if (fact.fact === "ExpectationsEvaluated") this.judged.push({ place: this.moments.length - 1, outcomes: fact.outcomes });
    const line = told(fact);
    if (line) {
      if (moment.lines.length < LISTED) moment.lines.push(line);
      else moment.lines[LISTED - 1] = { actor: "", text: "and more" };
    }
    for (const [kind, key, row] of this.changesOf(fact, moment)) {
      const place = `${kind}/${key}`;
      moment.changes.push({ kind, key, row, before: this.rows.get(place) || null });
      if (row) this.rows.set(place, row);
      else this.rows.delete(place);
    }
  }

  /** @param {any} fact @returns {Moment} */
  momentOf(fact) {
    const [major, minor] = fact.step;
    const last = this.moments[this.moments.length - 1];
    if (last && last.major === major && last.minor === minor && last.time === fact.time) return last;
    const moment = { major, minor, time: fact.time, changes: [], lines: [], bound: 0, failed: 0, gone: 0 };
    this.moments.push(moment);
    return moment;
  }

  /** @param {any} fact @param {Moment} moment @returns {["nodes" | "pods", string, any][]} */
  changesOf(fact, moment) {
    const key = fact.namespace ? `${fact.namespace}/${fact.name}` : fact.name;
    const pod = this.rows.get(`pods/${key}`);
    switch (fact.fact) {
      case "ObjectCreated": case "ObjectPatched": case "ObjectKept":
        if (!fact.object || fact.apiVersion !== "v1") return [];
        if (fact.kind === "Node") return [["nodes", key, nodeAt(nodeRow(fact.object))]];
        if (fact.kind === "Pod") return [["pods", key, podAt(podRow(fact.object), pod)]];
        return [];
      case "ObjectDeleted":
        if (fact.apiVersion !== "v1" || (fact.kind !== "Pod" && fact.kind !== "Node")) return [];
        moment.gone++;
        if (fact.kind === "Node") return fact.marked ? [] : [["nodes", key, null]];
        return [["pods", key, fact.marked && pod ? { ...pod, state: "Terminating" } : null]];
      case "PodScheduled":
        moment.bound++;
        return pod ? [["pods", key, { ...pod, node: fact.node, state: "Bound", why: "" }]] : [];
      case "PodUnscheduled":
        moment.failed++;
        return pod ? [["pods", key, { ...pod, state: "Unschedulable", why: fact.message || "", nominated: fact.nominated || "" }]] : [];
      case "PodEnded":
        return [["pods", key, null]];
      case "PodFinished":
        return pod ? [["pods", key, { ...pod, state: fact.phase || "Succeeded" }]] : [];
      default:
        return [];
    }
  }

  /** What was known of the expectations at a moment, and how many of them had turned since they were looked at before. @param {number} at */
  expectationsAt(at) {
    const known = this.judged.filter((each) => each.place <= at), last = known[known.length - 1];
    if (!last) return [];
    const before = new Map((known[known.length - 2] || { outcomes: [] }).outcomes.map((/** @type {any} */ each) => [each.name || each.expression, each.holds]));
    return last.outcomes.map((/** @type {any} */ each) => ({ ...each, hasTurned: before.has(each.name || each.expression) && before.get(each.name || each.expression) !== each.holds }));
  }

  /** Show the world as it was at a moment. @param {number} to */
  go(to) {
    const target = Math.max(-1, Math.min(this.moments.length - 1, to));
    /** @type {{nodes: Map<string, any>, pods: Map<string, any>}} */
    const net = { nodes: new Map(), pods: new Map() };
    while (this.at < target) for (const each of this.moments[++this.at].changes) net[each.kind].set(each.key, each.row);
    while (this.at > target) {
      const { changes } = this.moments[this.at--];
      for (let place = changes.length - 1; place >= 0; place--) net[changes[place].kind].set(changes[place].key, changes[place].before);
    }
    this.world.take({ type: "changes", nodes: [...net.nodes], pods: [...net.pods] });
  }
}

/** What kubelets say of their nodes is not told: one of which nothing is known does not look as if it booted. @param {any} row */
const nodeAt = (row) => ({ ...row, ready: row.ready || "untold" });

/** What the facts know of a pod: statuses of kubelets are not told, so one that has a node is bound. @param {any} row @param {any} before */
function podAt(row, before) {
  if (row.node && (row.state === "Starting" || row.state === "Running")) return { ...row, state: "Bound" };
  return before && before.why && !row.node && row.state === "Pending" ? { ...row, state: before.state, why: before.why } : row;
}

/** A fact in words. @param {any} fact @returns {Line | null} */
function told(fact) {
  const name = fact.namespace ? `${fact.namespace}/${fact.name}` : fact.name;
  switch (fact.fact) {
    case "PodScheduled": return { actor: fact.actor, text: `${name} goes to ${fact.node}`, href: ["pod", fact.namespace, fact.name] };
    case "PodUnscheduled": return { actor: fact.actor, text: `${name} finds no node: ${fact.message || ""}`, href: ["pod", fact.namespace, fact.name], isBad: true };
    case "PodPreempted": return { actor: fact.actor, text: `${name} makes room for ${fact.preemptedBy}`, isBad: true };
    case "PodEnded": return { actor: fact.actor, text: `${name} is gone from ${fact.node}` };
    case "PodFinished": return { actor: fact.actor, text: `${name} has ended: ${fact.phase} ${fact.reason || ""}` };
    case "PodRestarted": return { actor: fact.actor, text: `${name}: ${fact.container} begins once more`, isBad: true };
    case "Advanced": return { actor: fact.actor, text: `time passes: ${(fact.operation || {}).duration || ""}` };
    case "Done": return { actor: fact.actor, text: "the scenario is done" };
    case "ScenarioEnded": return { actor: fact.actor, text: `${fact.phase} ${fact.message || ""}`, isBad: fact.phase === "Failed" };
    case "NotSimulated": return { actor: fact.actor, text: (fact.warnings || []).map((/** @type {any} */ each) => (typeof each === "string" ? each : each.message || each.what)).join("; "), isBad: true };
    default: {
      const word = WORDS.get(fact.fact);
      // A binding is told by the attempt, and what a controller writes into a status is told by what comes of it.
      return word && !(fact.subresource && fact.role !== "engine" && fact.role !== "user") ? { actor: fact.actor, text: `${fact.kind} ${name} ${word}${fact.subresource ? ` (${fact.subresource})` : ""}` } : null;
    }
  }
}
