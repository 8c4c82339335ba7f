// Nodes beside plugins: what each gave, the winner first; sorted by any column, and long lists are drawn as far as they are seen.

import { bar, fill, h, number } from "../shared/dom.js";

const ROW = 28;
const SPARE = 10;
const TALL = 420;
/** What of a score is shown: as it enters the total, before its weight, or as the plugin gave it. */
export const SCALES = [["", "weighted"], ["normalised", "normalised"], ["raw", "raw"]];

/** What a plugin gave a node. @param {any} attempt @param {any} row @param {number} at the plugin's place @param {string} scale @returns {number} */
export function scoreOf({ weights }, { scores = [], raw = [] }, at, scale) {
  if (scale === "raw") return raw[at] || 0;
  return (scores[at] || 0) / (scale === "normalised" ? weights[at] || 1 : 1);
}

export class ScoreTable {
  /** @param {any} attempt a digested attempt */
  constructor(attempt) {
    this.attempt = attempt;
    this.column = -1;
    this.isDown = true;
    this.text = "";
    this.scale = "";
    this.most = this.greatest();
    this.body = h("tbody", {});
    this.head = h("thead", {});
    this.scroller = h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Nodes that fit, and what each plugin gave them", on: { scroll: () => this.draw() } }, h("table", { class: "scores" }, this.head, this.body));
    this.find = h("input", { type: "search", placeholder: "Find a node", "aria-label": "Find a node", on: { input: (/** @type {any} */ event) => { this.text = event.target.value.trim().toLowerCase(); this.sort(); } } });
    const scale = h("label", { class: "row" }, "scores", h("select", { id: "scale", on: { change: (/** @type {any} */ event) => this.as(event.target.value) } }, SCALES.map(([value, text]) => h("option", { value }, text))));
    this.element = h("div", {}, h("p", { class: "row" }, attempt.rows.length > 12 && this.find, attempt.plugins.length > 0 && scale), this.scroller);
    this.ranks = new Map([...attempt.rows].sort((a, b) => (b.total || 0) - (a.total || 0)).map((row, place) => [row.node, place + 1]));
    this.sort();
  }

  greatest() {
    const { attempt, scale } = this;
    return attempt.rows.reduce((/** @type {number} */ most, /** @type {any} */ row) => attempt.plugins.reduce((/** @type {number} */ sofar, /** @type {string} */ _, /** @type {number} */ at) => Math.max(sofar, scoreOf(attempt, row, at, scale)), most), 1);
  }

  /** @param {string} scale one of `SCALES` */
  as(scale) {
    this.scale = scale;
    this.most = this.greatest();
    this.sort();
  }

  sort() {
    const value = (/** @type {any} */ row) => (this.column < 0 ? row.total || 0 : this.column === this.attempt.plugins.length ? row.node : scoreOf(this.attempt, row, this.column, this.scale));
    const way = this.isDown ? -1 : 1;
    this.rows = this.attempt.rows.filter((/** @type {any} */ row) => !this.text || row.node.toLowerCase().includes(this.text));
    this.rows.sort((/** @type {any} */ a, /** @type {any} */ b) => {
      const [left, right] = [value(a), value(b)];
      if (left !== right) return left < right ? -way : way;
      return Number(b.node === this.attempt.node) - Number(a.node === this.attempt.node);
    });
    this.tellHead();
    this.draw();
  }

  /** @param {number} column */
  by(column) {
    this.isDown = this.column === column ? !this.isDown : column !== this.attempt.plugins.length;
    this.column = column;
    this.sort();
  }

  tellHead() {
    const { plugins, weights } = this.attempt;
    const heading = (/** @type {string} */ name, /** @type {number} */ column, /** @type {string} */ kind, /** @type {number} */ times) => h("th", { scope: "col", class: kind, "aria-sort": this.column === column ? (this.isDown ? "descending" : "ascending") : "none" },
      h("button", { type: "button", class: "key", on: { click: () => this.by(column) } }, name.replace(/([a-z])(?=[A-Z])/g, "$1\u200b"), times > 1 && !this.scale ? ` ×${times}` : ""));
    fill(this.head, h("tr", {}, h("th", { scope: "col", class: "n" }, "rank"), heading("node", plugins.length, "", 1), plugins.length > 0 && heading("total", -1, "n", 1),
      plugins.map((/** @type {string} */ plugin, /** @type {number} */ at) => heading(plugin, at, "n", weights[at] || 1))));
  }

  draw() {
    const { rows } = this;
    const isLong = rows.length * ROW > TALL + 2 * ROW;
    this.scroller.style.maxHeight = isLong ? `${TALL}px` : "";
    const first = isLong ? Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE) : 0;
    const last = isLong ? Math.min(rows.length, first + Math.ceil(TALL / ROW) + 2 * SPARE) : rows.length;
    const gap = (/** @type {number} */ count) => {
      const row = h("tr", { "aria-hidden": "true" }, h("td", { colspan: this.attempt.plugins.length + 3 }));
      /** @type {any} */ (row.firstChild).style.height = `${count * ROW}px`;
      return count ? [row] : [];
    };
    fill(this.body, ...gap(first), ...rows.slice(first, last).map((/** @type {any} */ row) => this.row(row)), ...gap(rows.length - last));
  }

  /** @param {any} row */
  row(row) {
    const score = (/** @type {number} */ value) => h("td", { class: "n" }, h("span", { class: "score" }, bar((100 * value) / this.most), h("span", { class: value ? "" : "zero" }, number(value))));
    return h("tr", { class: row.node === this.attempt.node ? "won" : null }, h("td", { class: "n" }, number(this.ranks.get(row.node) || 0)), h("td", {}, row.node),
      this.attempt.plugins.length > 0 && h("td", { class: "n total" }, row.total == null ? "" : number(row.total)), (row.scores || []).map((/** @type {number} */ _, /** @type {number} */ at) => score(scoreOf(this.attempt, row, at, this.scale))));
  }
}
