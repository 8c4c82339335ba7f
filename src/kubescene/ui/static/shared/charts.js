// Lines over time, one below the other, with one cursor over all of them.

import { h, number } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 52, RIGHT = 14, RIGHT_AXIS = 46, TOP = 8, BELOW = 22;

/**
 * @typedef {{name: string, points: [number, number][], tone: string, isStep?: boolean, isDots?: boolean, isGhost?: boolean, isRight?: boolean, isLevel?: boolean}} Series
 */

/** @param {string} tag @param {Record<string, string | number>} attributes @param {...(Element | string)} children */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Where the pointer or the keys are, in the units of the x axis; null for nowhere. */
export class Cursor extends EventTarget {
  constructor() {
    super();
    /** @type {number | null} */
    this.at = null;
  }

  /** @param {number | null} at */
  move(at) {
    this.at = at;
    this.dispatchEvent(new Event("moved"));
  }
}

export class TimeChart {
  /** @param {{title: string, unit: string, rightUnit?: string, height?: number, cursor: Cursor, chosen?: (at: number) => void}} given */
  constructor({ title, unit, rightUnit = "", height = 150, cursor, chosen }) {
    Object.assign(this, { title, unit, rightUnit, height });
    this.title = title;
    this.unit = unit;
    this.rightUnit = rightUnit;
    this.height = height;
    this.cursor = cursor;
    /** @type {Series[]} */
    this.series = [];
    this.end = 1;
    this.isAligned = false;
    this.ghostName = "before";
    this.legend = h("span", { class: "legend" });
    this.readout = h("span", { class: "reads mono", "aria-live": "off" });
    this.place = h("div", { class: "plotting", tabindex: 0, role: "img", "aria-label": `${title}: arrow keys move the cursor` });
    this.element = h("figure", { class: "chart" }, h("figcaption", {}, h("b", {}, title), h("small", {}, rightUnit ? `${unit}, right: ${rightUnit}` : unit), this.legend, this.readout), this.place);
    this.place.addEventListener("mousemove", (event) => cursor.move(this.timeAt(event.clientX)));
    this.place.addEventListener("click", (event) => { const at = this.timeAt(event.clientX); if (chosen && at !== null) chosen(at); });
    this.place.addEventListener("mouseleave", () => cursor.move(null));
    this.place.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      cursor.move(Math.max(0, Math.min(this.end, (cursor.at || 0) + (by * this.end) / 100)));
    });
    cursor.addEventListener("moved", () => this.drawCursor());
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  /** @param {Series[]} series @param {number} end of the x axis, in seconds @param {number[]} [marks] times at which something was decided */
  show(series, end, marks = []) {
    this.series = series;
    this.marks = marks;
    this.end = end || 1;
    this.legend.replaceChildren(...series.filter((each) => !each.isGhost).map((each) => h("span", {}, h("i", { class: `t-${each.tone}` }), each.name)), ...(series.some((each) => each.isGhost) ? [h("span", {}, h("i", { class: "t-ghost" }), this.ghostName)] : []));
    this.draw();
  }

  /** @param {number} clientX */
  timeAt(clientX) {
    const box = this.place.getBoundingClientRect();
    const share = (clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - this.right);
    return share < 0 || share > 1 ? null : share * this.end;
  }

  get hasRight() { return this.series.some((each) => each.isRight); }

  /** Room at the right: charts below each other have one axis, so they have the same. */
  get right() { return this.hasRight || this.isAligned ? RIGHT_AXIS : RIGHT; }

  draw() {
    const width = this.place.clientWidth;
    if (width < 80) return;
    const room = width - LEFT - this.right, tall = this.height - TOP - BELOW;
    const most = (/** @type {boolean} */ isRight) => topOf(this.series.filter((each) => Boolean(each.isRight) === isRight).map((each) => each.points));
    const [left, right] = [most(false), most(true)];
    this.x = (/** @type {number} */ at) => LEFT + (at / this.end) * room;
    this.y = (/** @type {number} */ value, /** @type {boolean} */ isRight) => TOP + tall * (1 - value / (isRight ? right : left));
    const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${this.height}`, width, height: this.height, "aria-hidden": "true" });
    for (const share of [0, 0.5, 1]) {
      const y = TOP + tall * (1 - share);
      drawing.append(svg("line", { class: "grid", x1: LEFT, x2: LEFT + room, y1: y, y2: y }), svg("text", { class: "left", x: LEFT - 6, y: y + 4 }, short(left * share)));
      if (this.hasRight) drawing.append(svg("text", { class: "right", x: LEFT + room + 6, y: y + 4 }, short(right * share)));
    }
    const step = timeStep(this.end, Math.max(2, Math.floor(room / 90)));
    for (let at = 0; at <= this.end; at += step) drawing.append(svg("text", { class: "below", x: LEFT + (at / this.end) * room, y: this.height - 6 }, asSeconds(at)));
    for (const each of [...this.series].sort((a, b) => Number(b.isGhost || 0) - Number(a.isGhost || 0))) drawing.append(this.line(each, room));
    for (const at of this.marks || []) drawing.append(svg("path", { class: "decided", d: `M${this.x(at).toFixed(1)} ${TOP - 6}l4 0l-4 7l-4 -7z` }));
    this.line_ = svg("line", { class: "cursor", y1: TOP, y2: TOP + tall, visibility: "hidden" });
    drawing.append(this.line_);
    this.place.replaceChildren(drawing);
    this.drawCursor();
  }

  /** @param {Series} each @param {number} room */
  line(each, room) {
    const { x, y } = /** @type {any} */ (this);
    if (each.isLevel) return svg("path", { d: `M${LEFT} ${y(each.points[0][1], false).toFixed(1)}H${LEFT + room}`, class: "level s-level" });
    const points = each.isDots ? each.points : thinned(each.points, room * 2);
    let path = "", before = 0;
    points.forEach(([at, value], place) => {
      const [px, py] = [x(at).toFixed(1), y(value, Boolean(each.isRight)).toFixed(1)];
      if (each.isDots) path += `M${px} ${py}h0`;
      else if (!place) path += `M${px} ${py}`;
      else path += each.isStep ? `L${px} ${y(before, Boolean(each.isRight)).toFixed(1)}L${px} ${py}` : `L${px} ${py}`;
      before = value;
    });
    if (each.isStep && points.length) path += `L${x(this.end).toFixed(1)} ${y(before, Boolean(each.isRight)).toFixed(1)}`;
    return svg("path", { d: path || "M0 0", class: `s-${each.tone}${each.isDots ? " dots" : ""}${each.isGhost ? " ghost" : ""}` });
  }

  drawCursor() {
    const { at } = this.cursor;
    if (!this.line_ || !this.x) return;
    this.line_.setAttribute("visibility", at === null ? "hidden" : "visible");
    if (at === null) {
      this.readout.textContent = "";
      return;
    }
    this.line_.setAttribute("x1", String(this.x(at)));
    this.line_.setAttribute("x2", String(this.x(at)));
    const told = this.series.filter((each) => !each.isDots && !each.isLevel && !each.isRight).map((each) => [each.isGhost ? `${each.name} ${this.ghostName}` : each.name, valueAt(each.points, at)]).filter(([, value]) => value !== null);
    this.readout.textContent = `${asSeconds(at)}  ${told.map(([name, value]) => `${name} ${short(/** @type {number} */ (value))}`).join("  ")}`;
  }
}

/** The last value that was there at a time. @param {[number, number][]} points @param {number} at */
export function valueAt(points, at) {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= at) low = middle + 1;
    else high = middle;
  }
  return low ? points[low - 1][1] : null;
}

/** The lowest and the highest of each stretch, where there are more points than can be seen. @param {[number, number][]} points @param {number} most */
export function thinned(points, most) {
  if (points.length <= most) return points;
  const size = Math.ceil((2 * points.length) / most);
  /** @type {[number, number][]} */
  const kept = [];
  for (let from = 0; from < points.length; from += size) {
    const part = points.slice(from, from + size);
    let low = 0, high = 0;
    part.forEach(([, value], place) => {
      if (value < part[low][1]) low = place;
      if (value >= part[high][1]) high = place;
    });
    kept.push(...[...new Set([low, high])].sort((a, b) => a - b).map((place) => part[place]));
  }
  return kept;
}

/** The top of an axis that is marked at its half, too: there are no halves of pods. @param {[number, number][][]} lines */
export function topOf(lines) {
  const most = lines.reduce((top, points) => points.reduce((high, [, y]) => Math.max(high, y), top), 0);
  const isWhole = lines.every((points) => points.every(([, y]) => Number.isInteger(y)));
  return isWhole && niceTop(most) % 2 ? 2 * niceTop(Math.ceil(most / 2)) : niceTop(most);
}

/** The next round number at or above a value. @param {number} value */
export function niceTop(value) {
  if (value <= 0) return 1;
  const scale = 10 ** Math.floor(Math.log10(value));
  return (/** @type {number} */ ([1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * scale >= value))) * scale;
}

/** How far marks of a time axis are from each other, so that there are at most so many. @param {number} end @param {number} most */
export function timeStep(end, most) {
  const days = [1, 2, 5, 10, 30, 100, 365].map((count) => 86400 * count);
  return [0.1, 0.5, 1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, ...days].find((step) => end / step <= most) || end;
}

/** @param {number} value */
export const short = (value) => (value >= 100 || Number.isInteger(value) ? number(Math.round(value)) : String(Math.round(value * 100) / 100));

/** @param {number} seconds */
export function asSeconds(seconds) {
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 120 ? `${minutes}m${whole % 60 ? `${whole % 60}s` : ""}` : `${Math.floor(minutes / 60)}h${minutes % 60 ? `${minutes % 60}m` : ""}`;
}
