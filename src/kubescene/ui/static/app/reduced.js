// Pods and nodes as the map needs them: a few words and numbers of each.

import { amount } from "./quantities.js";

/** In the order of the legend. */
export const STATES = ["Running", "Bound", "Starting", "Pending", "Unschedulable", "Failed", "Terminating", "Succeeded"];

/**
 * @typedef {{key: string, name: string, cpu: number, memory: number, pods: number, labels: Record<string, string>,
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
    key: metadata.name, name: metadata.name, cpu: amount(room.cpu), memory: amount(room.memory), pods: amount(room.pods),
    labels: metadata.labels || {}, ready: ready ? ready.status : "", cordoned: Boolean(spec.unschedulable),
    taints: (spec.taints || []).map((/** @type {any} */ each) => `${each.key}${each.value ? `=${each.value}` : ""}:${each.effect}`),
  };
}

/** @param {any} object @returns {PodRow} */
export function podRow(object) {
  const { metadata, spec = {}, status = {} } = object;
  const scheduled = (status.conditions || []).find((/** @type {any} */ each) => each.type === "PodScheduled");
  const owner = (metadata.ownerReferences || []).find((/** @type {any} */ each) => each.controller);
  return {
    key: `${metadata.namespace}/${metadata.name}`, namespace: metadata.namespace, name: metadata.name,
    node: spec.nodeName || "", state: stateOf(metadata, spec, status, scheduled), ...requests(spec),
    labels: metadata.labels || {}, why: scheduled && scheduled.status === "False" ? scheduled.message || scheduled.reason || "" : "",
    nominated: status.nominatedNodeName || "", owner: owner ? `${owner.kind}/${owner.name}` : "",
  };
}

/** @param {any} metadata @param {any} spec @param {any} status @param {any} scheduled */
function stateOf(metadata, spec, status, scheduled) {
  if (status.phase === "Succeeded" || status.phase === "Failed") return status.phase;
  if (metadata.deletionTimestamp) return "Terminating";
  if (spec.nodeName) return status.phase === "Running" ? "Running" : "Starting";
  return scheduled && scheduled.reason === "Unschedulable" ? "Unschedulable" : "Pending";
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
