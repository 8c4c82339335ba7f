// One object as YAML: read, edited, checked by the server before it is written, deleted.

import { fill, h } from "../../shared/dom.js";
import { ask, ApiError } from "../api.js";
import { Editor } from "../editor.js";
import { address } from "../router.js";
import { Schema } from "../schema.js";
import { isMeant, toast } from "../toasts.js";
import { pathOf } from "./objects.js";

const YAML = "application/yaml";

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const page = new ObjectPage(place, visit);
  await page.read();
  return { title: page.name };
}

class ObjectPage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
  constructor(place, visit) {
    const [group, version, plural, namespace, name] = visit.params;
    this.group = group;
    this.version = version;
    this.plural = plural;
    this.namespace = namespace;
    this.name = name;
    this.router = visit.router;
    this.path = pathOf(this.group, this.version, this.plural, this.namespace === "-" ? "" : this.namespace, this.name);
    this.before = "";
    this.editor = new Editor({ id: "yaml", name: `YAML of ${this.name}`, changed: () => this.changed(), schema: new Schema() });
    this.said = h("div", { id: "said", role: "alert" });
    this.diff = h("div", { id: "diff" });
    this.check = h("button", { type: "button", id: "check", disabled: true, on: { click: () => this.dry() } }, "Check");
    this.apply = h("button", { type: "button", id: "apply", class: "primary", disabled: true, on: { click: () => this.write() } }, "Apply");
    place.className = "filled";
    fill(place, h("p", { class: "crumbs" }, h("a", { href: "/ui/r" }, "Objects"), " / ", h("a", { href: address(["r", this.group, this.version, this.plural]) }, this.plural), this.namespace === "-" ? "" : ` / ${this.namespace}`, " /"),
      h("div", { class: "controls" }, h("h1", {}, this.name), this.check, this.apply, h("button", { type: "button", on: { click: () => this.read() } }, "Read again"), h("button", { type: "button", id: "delete", on: { click: () => this.remove() } }, "Delete")),
      this.said, h("div", { class: "editing" }, this.editor.element, this.diff));
  }

  async read() {
    this.before = folded(await ask(this.path, { accept: YAML }));
    this.editor.value = this.before;
    this.tell("");
    this.changed();
  }

  changed() {
    const isChanged = this.editor.value !== this.before;
    for (const button of [this.check, this.apply]) /** @type {any} */ (button).disabled = !isChanged;
    fill(this.diff, ...(isChanged ? [h("h3", {}, "What changes"), h("pre", {}, differences(this.before, this.editor.value).map(([sign, line]) => h("span", { class: sign === "+" ? "added" : "removed" }, `${sign} ${line}\n`)))] : []));
  }

  /** @param {string} text @param {boolean} [isGood] */
  tell(text, isGood = false) {
    this.said.className = text ? `said ${isGood ? "good" : ""}` : "";
    this.said.textContent = text;
  }

  /** @param {string} query */
  async put(query) {
    try {
      await ask(`${this.path}?fieldValidation=Strict${query}`, { method: "PUT", body: this.editor.value });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const place = lineOf(this.editor.value, error);
      this.tell(place ? `line ${place}: ${error.message}` : error.message);
      if (place) this.editor.select(place);
      return false;
    }
  }

  async dry() {
    if (await this.put("&dryRun=All")) this.tell("The server would take this.", true);
  }

  async write() {
    if (!(await this.put(""))) return;
    toast(`${this.name} is changed`);
    await this.read();
  }

  async remove() {
    if (!(await isMeant(`Delete ${this.name}?`, "Delete"))) return;
    try {
      await ask(this.path, { method: "DELETE" });
      this.router.go(address(["r", this.group, this.version, this.plural]));
    } catch (error) {
      this.tell(/** @type {Error} */ (error).message);
    }
  }
}

/** Without managedFields, which nobody edits. @param {string} text */
function folded(text) {
  const lines = text.split("\n");
  const from = lines.indexOf("  managedFields:");
  if (from < 0) return text;
  let to = from + 1;
  while (to < lines.length && (lines[to].startsWith("   ") || lines[to].startsWith("  -"))) to++;
  return [...lines.slice(0, from), ...lines.slice(to)].join("\n");
}

/** Lines that only one of two texts has, by their longest common rows. @param {string} before @param {string} after @returns {[string, string][]} */
export function differences(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  if (left.length * right.length > 4e6) return [...left.map((line) => /** @type {[string, string]} */ (["-", line])), ...right.map((line) => /** @type {[string, string]} */ (["+", line]))];
  const lengths = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i--) for (let j = right.length - 1; j >= 0; j--) lengths[i][j] = left[i] === right[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  /** @type {[string, string][]} */
  const found = [];
  let i = 0, j = 0;
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) { i++; j++; }
    else if (j >= right.length || (i < left.length && lengths[i + 1][j] >= lengths[i][j + 1])) found.push(["-", left[i++]]);
    else found.push(["+", right[j++]]);
  }
  return found;
}

/** The line that a refusal is about: one that the reader names, or the one of the last part of a field's path. @param {string} text @param {ApiError} error */
export function lineOf(text, error) {
  const named = /line (\d+)/.exec(error.message);
  if (named) return Number(named[1]);
  const causes = ((error.status && error.status.details) || {}).causes || [];
  const field = causes.length ? causes[0].field : (/unknown field "([^"]+)"/.exec(error.message) || [])[1];
  if (!field) return 0;
  const lines = text.split("\n");
  let from = 0;
  for (const part of field.split(/[.[\]]+/).filter((/** @type {string} */ each) => each && !/^\d+$/.test(each))) {
    const at = lines.findIndex((line, place) => place >= from && new RegExp(`^[\\s-]*${part.replace(/[.*+?^${}()|\\]/g, "\\$&")}:`).test(line));
    if (at < 0) break;
    from = at;
  }
  return from + 1;
}
