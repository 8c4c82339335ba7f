// Questions to a snapshot, or to the cluster as it stands: what would happen if; nothing of it is changed.

import { byId, fill, h, number } from "../../shared/dom.js";
import { ask, ApiError } from "../api.js";
import { asked, forget } from "../bringing.js";
import { Editor } from "../editor.js";

const PATH = "/simulator/v1/what-if";

/** @typedef {{name: string, label: string, example?: string, choices?: string[], isLong?: boolean}} Field @typedef {{name: string, about: string, fields: Field[]}} Question */

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const { questions } = await ask(PATH);
  const page = new WhatIfPage(place, visit, questions);
  return { title: "What if", leave: () => page.cancel(), changed: (/** @type {Map<string, string>} */ query) => page.chosen(query) };
}

class WhatIfPage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit @param {Question[]} questions */
  constructor(place, visit, questions) {
    this.router = visit.router;
    this.questions = questions;
    /** @type {AbortController | null} */
    this.going = null;
    /** The text of a snapshot, or nothing for the cluster as it stands. */
    this.snapshot = asked.text;
    this.about = h("span", { id: "about", "aria-live": "polite" });
    this.fields = h("div", { id: "fields" });
    this.answer = h("section", { id: "answer", "aria-live": "polite", "aria-label": "Answer" });
    this.said = h("div", { id: "said", role: "alert" });
    this.button = h("button", { type: "submit", id: "ask", class: "primary" }, "Ask");
    this.stop = h("button", { type: "button", id: "cancel", hidden: true, on: { click: () => this.cancel() } }, "Cancel");
    this.choice = /** @type {HTMLSelectElement} */ (h("select", { id: "question", on: { change: () => { this.router.note({ question: this.choice.value }, { push: true }); this.drawFields(new Map()); } } }, questions.map(({ name, about }) => h("option", { value: name }, `${name}: ${about}`))));
    place.className = "reading asking";
    fill(place, h("h1", {}, "What if …"), h("p", { class: "story" }, "A question is answered in a copy: nothing happens to the cluster itself."),
      h("form", { on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); this.ask(); } } },
        h("p", { class: "row" }, h("b", {}, "Of"), this.about, h("label", { class: "row" }, "another one", h("input", { type: "file", id: "snapshot", "aria-label": "Open a snapshot, a dump or manifests", on: { change: (/** @type {any} */ event) => this.open(event.target.files[0]) } })), h("button", { type: "button", id: "as-it-is", on: { click: () => this.take("", "") } }, "this cluster")),
        h("p", { class: "row" }, h("label", { class: "row" }, "Question", this.choice)), this.fields, h("p", { class: "row" }, this.button, this.stop)), this.said, this.answer);
    this.chosen(visit.query);
    this.take(asked.text, asked.name);
  }

  /** @param {Map<string, string>} query */
  chosen(query) {
    const name = query.get("question");
    this.choice.value = this.questions.some((each) => each.name === name) ? /** @type {string} */ (name) : this.questions[0].name;
    this.drawFields(query);
  }

  /** @param {File | undefined} file */
  async open(file) { if (file) this.take(await file.text(), file.name); }

  /** @param {string} text @param {string} name */
  take(text, name) {
    this.snapshot = text;
    if (text) Object.assign(asked, { text, name });
    else forget();
    this.about.textContent = text ? `${name || "what you pasted"} (${number(text.length)} characters)` : "this cluster as it stands";
  }

  /** @param {Map<string, string>} query */
  drawFields(query) {
    const { fields } = /** @type {Question} */ (this.questions.find((each) => each.name === this.choice.value));
    /** @type {Map<string, Editor>} */
    this.long = new Map();
    fill(this.fields, fields.map((field) => {
      const id = `field-${field.name}`, value = query.get(field.name) || "";
      if (field.isLong) {
        const editor = new Editor({ id, name: field.label, rows: 10 });
        /** @type {Map<string, Editor>} */ (this.long).set(field.name, editor);
        return h("div", {}, h("b", {}, field.label), editor.element);
      }
      return h("label", { class: "field" }, h("span", {}, field.label), field.choices ? h("select", { id }, field.choices.map((each) => h("option", { value: each, selected: each === value }, each))) : h("input", { type: "text", id, value, placeholder: field.example || "" }));
    }));
  }

  /** What was typed; what is empty is left to the question. */
  get given() {
    const { fields } = /** @type {Question} */ (this.questions.find((each) => each.name === this.choice.value));
    const typed = fields.map(({ name }) => [name, this.long && this.long.has(name) ? /** @type {Editor} */ (this.long.get(name)).value : /** @type {any} */ (byId(`field-${name}`)).value]);
    return Object.fromEntries(typed.filter(([, value]) => value.trim()));
  }

  async ask() {
    this.cancel();
    const going = this.going = new AbortController(), fields = this.given;
    this.router.note({ question: this.choice.value, ...Object.fromEntries(Object.entries(fields).filter(([name]) => !(this.long && this.long.has(name)))) });
    this.tell("");
    fill(this.answer, h("p", { class: "more" }, "It is played in a copy, which may take a while …"));
    this.stop.hidden = false;
    try {
      this.show(await ask(PATH, { method: "POST", signal: going.signal, body: { question: this.choice.value, fields, snapshot: this.snapshot } }));
    } catch (error) {
      if (going.signal.aborted) return;
      fill(this.answer);
      if (!(error instanceof ApiError)) throw error;
      this.tell(error.message);
    } finally {
      if (this.going === going) this.stop.hidden = true;
    }
  }

  cancel() {
    if (!this.going) return;
    this.going.abort();
    this.stop.hidden = true;
    fill(this.answer);
  }

  /** @param {string} text */
  tell(text) {
    this.said.className = text ? "said" : "";
    this.said.textContent = text;
  }

  /** @param {{unknown: string[], sentence: string, tables: Record<string, Record<string, string | number>[]>, measures: Record<string, number>, closer: string[]}} told */
  show({ unknown, sentence, tables, measures, closer }) {
    const cell = (/** @type {string | number} */ value) => h("td", { class: typeof value === "number" ? "n" : null }, typeof value === "number" ? number(value) : value);
    const table = (/** @type {Record<string, string | number>[]} */ rows) => h("div", { class: "wide" }, h("table", { class: "compact" }, h("thead", {}, h("tr", {}, Object.entries(rows[0]).map(([name, value]) => h("th", { scope: "col", class: typeof value === "number" ? "n" : null }, name)))), h("tbody", {}, rows.map((row) => h("tr", {}, Object.values(row).map(cell))))));
    fill(this.answer, h("h2", {}, "Answer"), h("p", { class: "story", id: "sentence" }, sentence),
      unknown.length > 0 && h("section", { id: "unknown" }, h("h3", {}, "What this does not know"), h("ul", {}, unknown.map((each) => h("li", {}, each)))),
      Object.entries(tables).filter(([, rows]) => rows.length).map(([title, rows]) => h("section", {}, h("h3", {}, title), table(rows))),
      h("section", { id: "measures" }, h("h3", {}, "Measures"), table(Object.entries(measures).map(([measure, value]) => ({ measure, value })))),
      closer.length > 0 && h("section", {}, h("h3", {}, "Look closer"), closer.map((each) => h("p", { class: "mono" }, each))));
  }
}
