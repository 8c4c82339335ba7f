// What the server's OpenAPI says of a place in a text of YAML: which fields there are, and what they mean.

import { ask } from "./api.js";

/** @typedef {{path: string, type: string, field: string, offered: string[], unknown: string}} About */

const NOTHING = { path: "", type: "", field: "", offered: [], unknown: "" };

export class Schema {
  constructor() {
    /** @type {Map<string, Promise<any>>} by apiVersion */
    this.documents = new Map();
  }

  /** @param {string} text @param {number} row @returns {Promise<About>} */
  async about(text, row) {
    const lines = text.split("\n"), [version, kind] = ["apiVersion", "kind"].map((name) => topValue(lines, row, name));
    if (!version || !kind) return NOTHING;
    const document = await this.documentOf(version), root = document && rootOf(document, version, kind);
    if (!root) return NOTHING;
    const { path, key, isDone } = placeAt(lines, row), within = path.reduce((/** @type {any} */ found, name) => found && stepInto(document, found, name), root);
    const fields = propertiesOf(document, within), own = fields && Object.hasOwn(fields, key) ? resolved(document, fields[key]) : null;
    if (own && isDone) return { path: [...path, key].join("."), type: typeOf(own), field: fields[key].description || own.description || "", offered: [], unknown: "" };
    const offered = fields ? Object.keys(fields).filter((name) => name.startsWith(key) && name !== key).sort() : [];
    return { ...NOTHING, offered: isDone ? [] : offered, unknown: fields && isDone && key && !within.additionalProperties ? key : "" };
  }

  /** @param {string} version */
  documentOf(version) {
    const known = this.documents.get(version);
    if (known) return known;
    const asked = ask(`/openapi/v3/${version.includes("/") ? "apis" : "api"}/${version}`).catch(() => null);
    this.documents.set(version, asked);
    return asked;
  }
}

/** The value of a field at the top of the document that has the row. @param {string[]} lines @param {number} row @param {string} name */
function topValue(lines, row, name) {
  let from = row, to = row + 1;
  while (from > 0 && !lines[from].startsWith("---")) from--;
  while (to < lines.length && !lines[to].startsWith("---")) to++;
  const line = lines.slice(from, to).find((each) => each.startsWith(`${name}:`));
  return line ? line.slice(name.length + 1).trim().replace(/^["']|["']$/g, "") : "";
}

/** Which keys lead to a row, by how far lines are to the right; whether its own key is written to its end. @param {string[]} lines @param {number} row */
export function placeAt(lines, row) {
  const own = keyIn(lines[row] || ""), path = [];
  let level = own.dash >= 0 ? own.dash : own.depth, isItem = own.dash >= 0;
  for (let at = row - 1; at >= 0 && (level > 0 || isItem); at--) {
    const line = lines[at], found = keyIn(line);
    if (!line.trim() || line.trim().startsWith("#") || !found.isDone) continue;
    // The items of a list may stand below its key without being further to the right.
    const isAbove = found.depth < level || (isItem && found.depth === level && found.dash < 0);
    if (isAbove) path.unshift(found.key);
    else if (found.depth !== level || found.dash < 0) continue;
    isItem = found.dash >= 0;
    level = isItem ? found.dash : found.depth;
  }
  return { path, key: own.key, isDone: own.isDone };
}

/** @param {string} line */
function keyIn(line) {
  const found = /^(\s*)((?:- +)*)("?)([\w./-]*)\3(:)?/.exec(line) || ["", "", "", "", "", ""];
  return { depth: found[1].length + found[2].length, dash: found[2] ? found[1].length : -1, key: found[4], isDone: Boolean(found[5]) };
}

/** @param {any} document @param {string} version @param {string} kind */
function rootOf(document, version, kind) {
  const [group, name] = version.includes("/") ? version.split("/") : ["", version];
  return Object.values(document.components.schemas).find((each) => (each["x-kubernetes-group-version-kind"] || []).some((/** @type {any} */ gvk) => gvk.kind === kind && gvk.group === group && gvk.version === name));
}

/** @param {any} document @param {any} schema @returns {any} */
function resolved(document, schema) {
  let found = schema;
  for (let depth = 0; found && depth < 8; depth++) {
    if (found.allOf && found.allOf.length === 1) found = found.allOf[0];
    else if (found.$ref) found = document.components.schemas[found.$ref.split("/").pop()];
    else return found;
  }
  return found;
}

/** The schema below a field; of a list, that of its items. @param {any} document @param {any} schema @param {string} name */
function stepInto(document, schema, name) {
  const fields = propertiesOf(document, schema);
  let found = fields && Object.hasOwn(fields, name) ? resolved(document, fields[name]) : schema && schema.additionalProperties ? resolved(document, schema.additionalProperties) : null;
  while (found && found.type === "array") found = resolved(document, found.items);
  return found;
}

/** @param {any} document @param {any} schema */
const propertiesOf = (document, schema) => (resolved(document, schema) || {}).properties;

/** @param {any} schema */
const typeOf = (schema) => (schema.type === "array" ? "list" : schema.type || "object");
