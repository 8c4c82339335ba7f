// Points and intervals of many runs: one value against another, and one measure of each.

import { svg } from "../shared/charts.js";
import { h } from "../shared/dom.js";

const WIDTH = 520, LEFT = 64, RIGHT = 20, TOP = 22, BOTTOM = 44;
const ROW = 20, NAMES = 200, NAMED = 30;

/**
 * @typedef {{mean: number, low?: number | null, high?: number | null, n?: number}} Estimate
 * @typedef {{name: string, x: Estimate, y: Estimate, tone: "up" | "down", isBest?: boolean}} PlotPoint
 * @typedef {{name: string, ticks?: [number, string][]}} PlotAxis
 */

/** One measure of each row, with its interval. @param {string} title @param {{name: string, value: Estimate | undefined, isBest?: boolean}[]} rows */
export function intervals(title, rows) {
  const known = rows.flatMap(({ value }) => (value ? ends(value) : []));
  if (!known.length) return null;
  const ticks = roundScale(known), left = rows.length > NAMED ? LEFT : NAMES, tall = TOP + rows.length * ROW, x = along(ticks, left, WIDTH - RIGHT);
  const drawing = drawn(tall + 26, `${title} of ${rows.length} combinations; the table below has the numbers`);
  for (const tick of ticks) drawing.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: TOP - 6, y2: tall }), svg("text", { class: "below", x: x(tick), y: tall + 16 }, told(tick)));
  rows.forEach(({ name, value, isBest }, place) => {
    const y = TOP + place * ROW + ROW / 2 - 4;
    if (rows.length <= NAMED) drawing.append(svg("text", { class: "left", x: left - 10, y: y + 4 }, name.length > 28 ? `${name.slice(0, 27)}…` : name));
    if (!value) return;
    const [low, high] = [Math.min(...ends(value)), Math.max(...ends(value))];
    if (high > low) drawing.append(svg("path", { class: "s-info", d: `M${x(low)} ${y}H${x(high)}` }));
    drawing.append(svg("circle", { class: "mark down", cx: x(value.mean), cy: y, r: isBest ? 6 : 4 }, svg("title", {}, `${name}: ${withInterval(value)}`)));
  });
  return h("figure", { class: "chart" }, h("figcaption", {}, h("b", {}, title)), drawing);
}

/** One value against another; a line leads from point to point, a level is what must not be passed.
 * @param {{title: string, x: PlotAxis, y: PlotAxis, points: PlotPoint[], line?: [number, number][], level?: number, height?: number}} given */
export function scatter({ title, x: xAxis, y: yAxis, points, line = [], level, height = 300 }) {
  if (!points.length) return null;
  const xs = xAxis.ticks ? roundScale(xAxis.ticks.map(([at]) => at), 0.5) : roundScale(points.flatMap((each) => ends(each.x))), ys = roundScale([...points.flatMap((each) => ends(each.y)), ...(level === undefined ? [] : [level])]);
  const x = along(xs, LEFT, WIDTH - RIGHT), y = along(ys, height - BOTTOM, TOP), drawing = drawn(height, `${title}: ${points.length} points; the table below has the numbers`);
  for (const at of ys) drawing.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(at), y2: y(at) }), svg("text", { class: "left", x: LEFT - 8, y: y(at) + 4 }, told(at)));
  for (const [at, name] of xAxis.ticks || xs.map((each) => /** @type {[number, string]} */ ([each, told(each)]))) drawing.append(svg("text", { class: "below", x: x(at), y: height - BOTTOM + 18 }, name));
  drawing.append(svg("text", { class: "unit", x: LEFT, y: TOP - 10 }, yAxis.name), svg("text", { class: "unit end", x: WIDTH - RIGHT, y: height - 8 }, xAxis.name));
  if (level !== undefined) drawing.append(svg("path", { class: "level s-level", d: `M${LEFT} ${y(level)}H${WIDTH - RIGHT}` }));
  if (line.length > 1) drawing.append(svg("path", { class: "s-info frontier", d: line.map(([a, b], place) => `${place ? "L" : "M"}${x(a)} ${y(b)}`).join("") }));
  for (const each of points) {
    const [lowX, highX, lowY, highY] = [Math.min(...ends(each.x)), Math.max(...ends(each.x)), Math.min(...ends(each.y)), Math.max(...ends(each.y))];
    if (highX > lowX || highY > lowY) drawing.append(svg("path", { class: "s-odd whisker", d: `M${x(lowX)} ${y(each.y.mean)}H${x(highX)}M${x(each.x.mean)} ${y(lowY)}V${y(highY)}` }));
    drawing.append(svg("circle", { class: `mark ${each.tone}`, cx: x(each.x.mean), cy: y(each.y.mean), r: each.isBest ? 8 : 5 }, svg("title", {}, `${each.name}: ${withInterval(each.x)}, ${withInterval(each.y)}`)));
  }
  return h("figure", { class: "chart" }, h("figcaption", {}, h("b", {}, title)), drawing);
}

/** Those than which no other is as small or smaller in both, from left to right. @param {{x: number, y: number}[]} points */
export function lowest(points) {
  /** @type {{x: number, y: number}[]} */
  const kept = [];
  for (const each of [...points].sort((a, b) => a.x - b.x || a.y - b.y)) if (!kept.length || each.y < kept[kept.length - 1].y) kept.push(each);
  return kept;
}

/** A mean, with half of its interval. @param {Estimate} value */
export const withInterval = ({ mean, high }) => `${told(mean)}${high === null || high === undefined ? "" : ` ± ${told(high - mean, 3)}`}`;

/** @param {number} value @param {number} [digits] */
export const told = (value, digits = 6) => String(Number(value.toPrecision(digits)));

/** @param {Estimate} value @returns {number[]} */
const ends = ({ mean, low, high }) => [mean, low ?? mean, high ?? mean];

/** @param {number} height @param {string} label */
const drawn = (height, label) => svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label });

/** @param {number[]} ticks @param {number} from @param {number} to */
function along(ticks, from, to) {
  const [first, last] = [ticks[0], ticks[ticks.length - 1]];
  return (/** @type {number} */ value) => Math.round(10 * (from + ((value - first) / (last - first)) * (to - from))) / 10;
}

/** Round numbers around all of them. @param {number[]} values @param {number} [beside] so much more on either side */
export function roundScale(values, beside = 0) {
  const least = Math.min(...values) - beside, most = Math.max(...values) + beside, span = most - least || Math.abs(most) || 1, power = 10 ** Math.floor(Math.log10(span / 4));
  const step = /** @type {number} */ ([1, 2, 2.5, 5, 10].find((each) => each * power >= span / 4)) * power, first = Math.floor(least / step);
  const last = Math.max(first + 1, Math.ceil(most / step));
  return Array.from({ length: last - first + 1 }, (_, place) => Number(((first + place) * step).toPrecision(12)));
}
