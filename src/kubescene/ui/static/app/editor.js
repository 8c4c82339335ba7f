// A place for YAML: colours behind the text, and beside it what the schema of the server knows of the line.

import { fill, h } from "../shared/dom.js";

const MOST_LINES = 4000;
const OFFERED = 8;
const LINE = /^(\s*)((?:- )*)(?:("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#:"'{[][^:#]*?)(:)(?=\s|$))?(.*)$/;
const COMMENT = /(^|\s)#.*$/;

/** @typedef {import("./schema.js").Schema} Schema */

export class Editor {
  /** @param {{id: string, name: string, value?: string, rows?: number, changed?: (value: string) => void, schema?: Schema}} given */
  constructor({ id, name, value = "", rows = 14, changed = () => {}, schema }) {
    this.changed = changed;
    this.schema = schema;
    this.paint = h("pre", { class: "paint", "aria-hidden": "true" });
    this.help = h("div", { class: "field-help", id: `${id}-help`, "aria-live": "polite" });
    this.field = /** @type {HTMLTextAreaElement} */ (h("textarea", { id, rows, spellcheck: "false", autocapitalize: "off", "aria-label": name, "aria-describedby": `${id}-help`, wrap: "off", on: {
      input: () => { this.draw(); this.changed(this.field.value); this.tell(); }, scroll: () => this.follow(), click: () => this.tell(), keyup: () => this.tell(), keydown: (/** @type {KeyboardEvent} */ event) => this.key(event) } }));
    this.element = h("div", { class: "editor" }, h("div", { class: "writing" }, this.paint, this.field), schema && this.help);
    this.value = value;
  }

  get value() { return this.field.value; }

  set value(text) {
    this.field.value = text;
    this.draw();
  }

  follow() {
    this.paint.scrollTop = this.field.scrollTop;
    this.paint.scrollLeft = this.field.scrollLeft;
  }

  draw() {
    const lines = this.field.value.split("\n");
    if (lines.length > MOST_LINES) this.paint.textContent = this.field.value;
    else fill(this.paint, lines.map((line) => [...painted(line), "\n"]));
    this.follow();
  }

  get row() { return this.field.value.slice(0, this.field.selectionStart).split("\n").length - 1; }

  /** What the schema knows of the line: its field, or those that may stand there. */
  async tell() {
    if (!this.schema) return;
    const text = this.field.value, row = this.row, asked = `${row}\n${text}`;
    if (this.asked === asked) return;
    this.asked = asked;
    const told = await this.schema.about(text, row);
    if (this.asked !== asked) return;
    this.offered = told.offered;
    fill(this.help, told.field && [h("b", { class: "mono" }, told.path), ` ${told.type} `, h("span", {}, told.field)],
      !told.field && told.offered.length > 0 && [h("span", { class: "more" }, this.word ? "Tab writes the first: " : "fields here: "), told.offered.slice(0, OFFERED).map((name) => h("button", { type: "button", class: "key mono", on: { click: () => this.complete(name) } }, name)), told.offered.length > OFFERED && h("span", { class: "more" }, `and ${told.offered.length - OFFERED} more`)],
      told.unknown && h("span", { class: "bad" }, `${told.unknown} is no field here`));
  }

  /** Tab writes what is offered, Esc lets it leave the field. @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Tab" || event.shiftKey || !this.offered || !this.offered.length || !this.word) return;
    event.preventDefault();
    this.complete(this.offered[0]);
  }

  /** The beginning of a key before the cursor. */
  get word() { return (/([A-Za-z][\w.-]*)$/.exec(this.field.value.slice(0, this.field.selectionStart)) || [""])[0]; }

  /** @param {string} name */
  complete(name) {
    const at = this.field.selectionStart, from = at - this.word.length;
    this.field.focus();
    this.field.setRangeText(`${name}: `, from, at, "end");
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Choose a line, for whoever says what is wrong with it. @param {number} line from 1 */
  select(line) {
    const lines = this.field.value.split("\n"), from = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    this.field.focus();
    this.field.setSelectionRange(from, from + (lines[line - 1] || "").length);
    this.field.scrollTop = Math.max(0, (line - 4) * (this.field.scrollHeight / lines.length));
  }
}

/** A line in its parts: keys, values, comments. @param {string} line @returns {(Node | string)[]} */
export function painted(line) {
  const comment = COMMENT.exec(line.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, (text) => "x".repeat(text.length)));
  const code = comment ? line.slice(0, comment.index) : line, rest = comment ? line.slice(comment.index) : "";
  const [, indent, dashes, key, colon, value] = /** @type {RegExpExecArray} */ (LINE.exec(code));
  const part = (/** @type {string} */ kind, /** @type {string | undefined} */ text) => (text ? h("span", { class: kind }, text) : "");
  return [indent, part("y-sign", dashes), part("y-key", key), part("y-sign", colon), part(kindOf(value.trim()), value), part("y-comment", rest)];
}

/** @param {string} value */
function kindOf(value) {
  if (/^-?[0-9.]+([eE][+-]?[0-9]+)?$/.test(value) || /^(true|false|null|~)$/.test(value)) return "y-number";
  return /^["']/.test(value) ? "y-text" : "y-value";
}
