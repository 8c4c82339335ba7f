// The same scenario up to a step, and then something else: what was played is played again, to the same bytes.

import { ask, ApiError } from "./api.js";
import { SCENARIOS } from "./bringing.js";
import { asYaml } from "./yaml.js";

/** What a Scenario that was told to wait after a step will be given next, as JSON. */
const STILL_TO_COME = "kubescene.dev/still-to-come";
const INDENT = "  ";

/** Its operations, under the name that its author gave the list. @param {any} spec @returns {["operations" | "events", any[]]} */
export const operationsOf = (spec) => (spec.events && spec.events.length ? ["events", spec.events] : ["operations", spec.operations || []]);

/** @param {any[]} operations @param {number} step */
export const upTo = (operations, step) => operations.filter((each) => each.step <= step);

/** @param {any[]} operations @param {number} step */
export const after = (operations, step) => operations.filter((each) => each.step > step);

/** @param {any[]} operations */
export const isEnded = (operations) => operations.some((each) => each.doneOperation || each.operation === "Done");

/** Operations as somebody edits them. @param {any[]} operations */
export const asText = (operations) => (operations.length ? asYaml(operations) : "");

/**
 * A Scenario of the first operations and those of a text, which the server reads: nothing here knows YAML.
 * @param {any} scenario @param {string} name @param {any[]} first @param {string} text
 */
export async function read(scenario, name, first, text) {
  const [field] = operationsOf(scenario.spec);
  const { operations: _, events: __, ...rest } = scenario.spec;
  const head = [`apiVersion: ${JSON.stringify(scenario.apiVersion)}`, "kind: Scenario", `metadata: ${JSON.stringify({ name, labels: scenario.metadata.labels })}`, "spec:",
    ...Object.entries(rest).map(([key, value]) => `${INDENT}${JSON.stringify(key)}: ${JSON.stringify(value)}`), `${INDENT}${field}:`, ...first.map((each) => `${INDENT}- ${JSON.stringify(each)}`)];
  const body = `${head.join("\n")}\n${text.trimEnd().split("\n").map((line) => `${INDENT}${line}`).join("\n")}\n`;
  try {
    return await ask(`${SCENARIOS}?dryRun=All&fieldValidation=Strict`, { method: "POST", body });
  } catch (error) {
    if (error instanceof ApiError) error.message = error.message.replace(/line (\d+)/g, (_all, line) => `line ${Math.max(1, Number(line) - head.length)}`);
    throw error;
  }
}

/**
 * Create a Scenario of a spec that was read; with `until`, it waits after that step and knows what comes next.
 * @param {any} made @param {number} [until]
 */
export function create(made, until = Infinity) {
  const { apiVersion, kind, metadata, spec } = made, [field, operations] = operationsOf(spec), rest = after(operations, until);
  const annotations = rest.length ? { [STILL_TO_COME]: JSON.stringify(rest) } : undefined;
  return ask(SCENARIOS, { method: "POST", body: { apiVersion, kind, metadata: { name: metadata.name, labels: metadata.labels, annotations }, spec: { ...spec, [field]: upTo(operations, until) } } });
}

/** What a Scenario that waits will be given next. @param {any} scenario @returns {any[]} */
export function stillToCome(scenario) {
  const kept = (scenario.metadata.annotations || {})[STILL_TO_COME];
  try {
    return kept ? JSON.parse(kept) : [];
  } catch {
    return [];
  }
}

/** Give a Scenario that waits more to play, at its end. @param {any} scenario @param {any[]} more @param {any[]} rest */
export function add(scenario, more, rest) {
  const [field, operations] = operationsOf(scenario.spec);
  const annotations = { [STILL_TO_COME]: rest.length ? JSON.stringify(rest) : null };
  return ask(`${SCENARIOS}/${encodeURIComponent(scenario.metadata.name)}`, { method: "PATCH", type: "application/merge-patch+json",
    body: { metadata: { annotations, resourceVersion: scenario.metadata.resourceVersion }, spec: { [field]: [...operations, ...more] } } });
}

/** The next name of the form NAME-2 that no Scenario has. @param {string} name */
export async function freeName(name) {
  const { items } = await ask(SCENARIOS);
  const taken = new Set(items.map((/** @type {any} */ each) => each.metadata.name)), base = name.replace(/-\d+$/, "");
  let count = 2;
  while (taken.has(`${base}-${count}`)) count++;
  return `${base}-${count}`;
}

/** A name that the run of a Scenario may be given; those of old runs are anything. @param {string} name */
export const asName = (name) => name.toLowerCase().replace(/[^a-z0-9.-]+/g, "-").replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "") || "scenario";
