// A run over virtual time: charts one below the other on one axis with one cursor, and what was decided, when and why.

import { asSeconds, Cursor, TimeChart } from "./charts.js";
import { counted, fill, h } from "./dom.js";

/** @typedef {{name: string, tone: string, points: [number, number][], step?: boolean, level?: boolean, dots?: boolean, right?: boolean}} ToldSeries */
/** @typedef {{title: string, unit: string, rightUnit?: string, series: ToldSeries[]}} ToldChart */
/** @typedef {{at: number, who: string, what: string, why?: string}} Decided */
/** @typedef {{end: number, charts: ToldChart[], decisions?: Decided[], decisionsTotal?: number}} ToldOverTime */

/** Charts that stay while what they show changes; a run may be laid under another. */
export class OverTime {
  /** @param {Cursor} cursor @param {(at: number) => void} [chosen] hears of a time that is clicked at @param {string} [ghostName] what the run that is laid under is called */
  constructor(cursor, chosen, ghostName = "before") {
    this.cursor = cursor;
    this.ghostName = ghostName;
    this.chosen = chosen;
    /** @type {Map<string, TimeChart>} */
    this.charts = new Map();
    this.place = h("div", { class: "over-charts" });
    this.decided = h("div", { class: "wide" });
    this.element = h("div", { class: "over" }, this.place, this.decided);
    /** @type {Decided[]} */
    this.decisions = [];
    cursor.addEventListener("moved", () => this.tellDecision());
  }

  /** @param {ToldOverTime} told @param {ToldOverTime | null} [under] */
  show(told, under = null) {
    const shown = told.charts.map((each) => this.chartOf(each));
    if (shown.some((chart, at) => this.place.children[at] !== chart.element) || this.place.children.length !== shown.length) fill(this.place, shown.map((each) => each.element));
    for (const chart of shown) chart.isAligned = told.charts.some((each) => each.series.some((line) => line.right));
    const marks = (told.decisions || []).map((each) => each.at);
    told.charts.forEach((each, at) => {
      const before = under && under.charts.find((other) => other.title === each.title);
      const ghosts = before ? before.series.filter((line) => !line.dots && !line.level).map((line) => ({ ...asSeries(line), tone: "odd", isGhost: true })) : [];
      shown[at].show([...each.series.map(asSeries), ...ghosts], told.end, at ? [] : marks);
    });
    this.decisions = told.decisions || [];
    this.tellDecisions(told.decisionsTotal || 0);
  }

  /** @param {ToldChart} told */
  chartOf(told) {
    const known = this.charts.get(told.title);
    if (known) return known;
    const chart = new TimeChart({ title: told.title, unit: told.unit, rightUnit: told.rightUnit, height: 140, cursor: this.cursor, chosen: this.chosen });
    chart.ghostName = this.ghostName;
    this.charts.set(told.title, chart);
    return chart;
  }

  /** @param {number} total */
  tellDecisions(total) {
    const go = (/** @type {number | null} */ at) => () => this.cursor.move(at);
    this.rows = this.decisions.map((each) => h("tr", { tabindex: 0, on: { mouseenter: go(each.at), mouseleave: go(null), focus: go(each.at), blur: go(null), click: () => this.chosen && this.chosen(each.at) } },
      h("td", { class: "when mono" }, asSeconds(each.at)), h("td", { class: "mono" }, each.who), h("td", {}, h("b", {}, each.what)), h("td", { class: "message" }, each.why || "")));
    const left = total - this.rows.length;
    fill(this.decided, this.rows.length > 0 && [h("h3", {}, "What was decided"), h("table", { class: "over-decisions" }, h("thead", {}, h("tr", {}, ["time", "who", "what", "why"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, this.rows))],
      left > 0 && h("p", { class: "more" }, `and ${counted(left, "later decision")} in the files of the run`));
    this.tellDecision();
  }

  /** The decision that the cursor stands at, or came from. */
  tellDecision() {
    const { at } = this.cursor;
    const last = at === null ? -1 : this.decisions.reduce((found, each, place) => (each.at <= at ? place : found), -1);
    (this.rows || []).forEach((row, place) => row.classList.toggle("here", place === last));
    const first = this.charts.values().next().value;
    if (first) first.place.title = last < 0 ? "" : `${asSeconds(this.decisions[last].at)}: ${this.decisions[last].what}. ${this.decisions[last].why || ""}`;
  }
}

/** @param {ToldSeries} told @returns {import("./charts.js").Series} */
const asSeries = ({ name, tone, points, step, level, dots, right }) => ({ name, tone, points, isStep: step, isLevel: level, isDots: dots, isRight: right });

/**
 * @param {HTMLElement} place @param {ToldOverTime} told
 * @param {{cursor?: Cursor, chosen?: (at: number) => void}} [how] whose cursor, and who hears of a time that is clicked at
 */
export function drawOverTime(place, told, { cursor = new Cursor(), chosen = undefined } = {}) {
  const shown = new OverTime(cursor, chosen);
  place.append(shown.element);
  shown.show(told);
}
