// Pods and nodes as the map needs them: a few words and numbers of each.

import { amount } from "./quantities.js";

/** In the order of the legend. */
export const STATES = ["Running", "Bound", "Starting", "Pending", "Unschedulable", "Failed", "Terminating", "Succeeded"];

/**
 * @typedef {{key: string, name: string, born: number, cpu: number, memory: number, pods: number, labels: Record<string, string>,
 *   ready: string, cordoned: boolean, taints: string[]}} NodeRow
 * @typedef {{key: string, namespace: string, name: string, node: string, state: string, cpu: number, memory: number,
 *   labels: Record<string, string>, why: string, nominated: string, owner: string}} PodRow
 */

/** @param {any} object @returns {NodeRow} */
export function nodeRow(object) {
  const { metadata, spec = {}, status = {} } = object;
  const room = status.allocatable || status.capacity || {};
  const ready = (status.conditions || []).find((/** @type {any} */ each) => each.type === "Ready");
  return {
    key: metadata.name, name: metadata.name, born: Date.parse(metadata.creationTimestamp || "") || 0, cpu: amount(room.cpu), memory: amount(room.memory), pods: amount(room.pods),
    labels: metadata.labels || {}, ready: ready ? ready.status : "", cordoned: Boolean(spec.unschedulable),
    taints: (spec.taints || []).map((/** @type {any} */ each) => `${each.key}${each.value ? `=${each.value}` : ""}:${each.effect}`),
  };
}

/** @param {any} object @returns {PodRow} */
export function podRow(object) {
  const { metadata, spec = {}, status = {} } = object, node = spec.nodeName || "";
  const owner = (metadata.ownerReferences || []).find((/** @type {any} */ each) => each.controller);
  return {
    key: `${metadata.namespace}/${metadata.name}`, namespace: metadata.namespace, name: metadata.name, node, ...requests(spec),
    labels: metadata.labels || {}, owner: owner ? `${owner.kind}/${owner.name}` : "", ...standing(status, node !== "", Boolean(metadata.deletionTimestamp)),
  };
}

/** How a pod is doing: what is said of one that waits is of interest while it does. @param {any} status @param {boolean} isPlaced @param {boolean} isDeleting */
function standing(status, isPlaced, isDeleting) {
  const scheduled = isPlaced ? null : (status.conditions || []).find((/** @type {any} */ each) => each.type === "PodScheduled");
  return { state: stateOf(status.phase, isPlaced, isDeleting, scheduled), why: scheduled && scheduled.status === "False" ? scheduled.message || scheduled.reason || "" : "",
    nominated: isPlaced ? "" : status.nominatedNodeName || "" };
}

/** @param {string} phase @param {boolean} isPlaced @param {boolean} isDeleting @param {any} scheduled */
function stateOf(phase, isPlaced, isDeleting, scheduled) {
  if (phase === "Succeeded" || phase === "Failed") return phase;
  if (isDeleting) return "Terminating";
  if (isPlaced) return phase === "Running" ? "Running" : "Starting";
  return scheduled && scheduled.reason === "Unschedulable" ? "Unschedulable" : "Pending";
}

/**
 * Pods as the server tells thousands of them: what is equal is looked at once, and numbers say which pod has it.
 * @typedef {{kind: string, names: string, at: Record<string, Uint32Array>, values: {namespace: string[], node: string[], owner: string[], labels: Record<string, string>[],
 *   spec: {cpu: number, memory: number}[], standing: {state: string, why: string, nominated: string}[]}}} PodColumns
 * @param {any} told @returns {PodColumns} small enough to be handed on at once
 */
export function podColumns(told) {
  const { node, status, spec, labels, owner, namespace } = told, standings = [], standsAt = new Uint32Array(told.names.length);
  /** @type {Map<number, number>} */
  const known = new Map();
  for (let at = 0; at < standsAt.length; at++) {
    const isPlaced = node.values[node.at[at]] !== "", isDeleting = told.deleting[at] !== 0;
    const which = 4 * status.at[at] + 2 * Number(isPlaced) + Number(isDeleting);
    let place = known.get(which);
    if (place === undefined) {
      known.set(which, place = standings.length);
      standings.push(standing(status.values[status.at[at]], isPlaced, isDeleting));
    }
    standsAt[at] = place;
  }
  const numbers = (/** @type {{at: number[]}} */ column) => Uint32Array.from(column.at);
  return {
    kind: "pods", names: told.names.join("\n"),
    at: { namespace: numbers(namespace), node: numbers(node), owner: numbers(owner), labels: numbers(labels), spec: numbers(spec), standing: standsAt },
    values: { namespace: namespace.values, node: node.values, owner: owner.values, labels: labels.values, spec: spec.values.map(requests), standing: standings },
  };
}

/** The rows that columns stand for. @param {PodColumns} columns @returns {PodRow[]} */
export function rowsOf({ names, at, values }) {
  return names.split("\n").slice(0, at.node.length).map((name, place) => {
    const namespace = values.namespace[at.namespace[place]], { cpu, memory } = values.spec[at.spec[place]], { state, why, nominated } = values.standing[at.standing[place]];
    return { key: `${namespace}/${name}`, namespace, name, node: values.node[at.node[place]], cpu, memory, labels: values.labels[at.labels[place]], owner: values.owner[at.owner[place]], state, why, nominated };
  });
}

/**
 * What a pod asks for, as the scheduler counts it: the containers and sidecars together, or the largest init container.
 * @param {any} spec
 */
export function requests(spec) {
  const sums = { cpu: 0, memory: 0 };
  const peaks = { cpu: 0, memory: 0 };
  const beside = { cpu: 0, memory: 0 };
  for (const name of /** @type {("cpu" | "memory")[]} */ (["cpu", "memory"])) {
    for (const each of spec.initContainers || []) {
      const asked = askedBy(each, name);
      if (each.restartPolicy === "Always") beside[name] += asked;
      peaks[name] = Math.max(peaks[name], each.restartPolicy === "Always" ? beside[name] : asked + beside[name]);
    }
    for (const each of spec.containers || []) sums[name] += askedBy(each, name);
    const pod = ((spec.resources || {}).requests || {})[name];
    const asked = pod === undefined ? Math.max(sums[name] + beside[name], peaks[name]) : amount(pod);
    sums[name] = asked + amount((spec.overhead || {})[name]);
  }
  return sums;
}

/** @param {any} container @param {string} name */
const askedBy = (container, name) => amount(((container.resources || {}).requests || {})[name]);

/** Whether a pod takes room on its node. @param {PodRow} pod */
export const takesRoom = (pod) => pod.node !== "" && pod.state !== "Succeeded" && pod.state !== "Failed";
