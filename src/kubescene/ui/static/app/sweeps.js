// The tables that `kubescene matrix` and `kubescene tune` write, read in one form.

import { amount } from "./quantities.js";

/**
 * @typedef {import("./plots.js").Estimate} Estimate
 * @typedef {{name: string, words: string[], settings: Map<string, string>, values: Map<string, Estimate>, runs: number, failed: number, kept: string, isKept: boolean, isBest: boolean, isOn: boolean, error: string}} SweepRow
 * @typedef {{kind: "matrix" | "tune", story: string, heads: string[], rows: SweepRow[], measures: string[], chosen: string[], x: string, y: string, levels: Map<string, number>, varied: string[]}} Sweep
 */

const MOST = 6;
const LATENCY = /p99|p95|latency|response/;

/** What a table says; nothing if it is none of ours. @param {any} table @returns {Sweep | null} */
export function sweepOf(table) {
  try {
    if (Array.isArray(table) && table.length && table.every((each) => typeof each.measures === "object" && "configuration" in each)) return ofMatrix(table);
    return table && Array.isArray(table.trials) && table.trials.length ? ofTuning(table) : null;
  } catch {
    return null;
  }
}

/** @param {any[]} table @returns {Sweep} */
function ofMatrix(table) {
  const parts = ["scenario", "configuration", "settings"].filter((part) => new Set(table.map((each) => each[part])).size > 1), heads = parts.length ? parts : ["scenario"];
  const paths = [...new Set(table.flatMap((each) => pairs(each.settings).map(([path]) => path)))], short = shortNames(paths);
  const rows = table.map((each) => {
    const settings = pairs(each.settings).map(([path, value]) => /** @type {[string, string]} */ ([short[paths.indexOf(path)], value]));
    const words = heads.map((part) => (part === "settings" && settings.length ? settings.map((pair) => pair.join("=")).join(" ") : String(each[part])));
    return { name: words.join(" · "), words, settings: new Map(settings), values: valuesOf(each.measures), runs: each.runs, failed: each.failed,
      kept: each.unmet ? `${each.runs - each.unmet} of ${each.runs}` : "", isKept: !each.failed && !each.unmet, isBest: false, isOn: false, error: each.error || "" };
  });
  const measures = measuresOf(rows), chosen = telling(rows, measures), y = measures.find((name) => LATENCY.test(name)) || chosen[1] || "";
  const x = measures.find((name) => /cost/.test(name)) || chosen.find((name) => name !== y) || "";
  return { kind: "matrix", story: `${rows.length} combinations, means over the seeds.`, heads, rows, measures, chosen: chosen.length ? chosen : measures.slice(0, MOST), x, y, levels: new Map(), varied: variedIn(rows) };
}

/** @param {any} table @returns {Sweep} */
function ofTuning(table) {
  const same = (/** @type {any} */ a, /** @type {any} */ b) => JSON.stringify(a) === JSON.stringify(b), paths = Object.keys(table.trials[0].settings), heads = shortNames(paths);
  const rows = table.trials.map((/** @type {any} */ each) => {
    const words = paths.map((path) => String(each.settings[path]));
    return { name: heads.map((head, place) => `${head}=${words[place]}`).join(" "), words, settings: new Map(heads.map((head, place) => [head, words[place]])), values: valuesOf(each.values), runs: each.runs, failed: each.failed,
      kept: `${each.held} of ${each.runs + each.failed}`, isKept: each.runs > 0 && !each.failed && each.held === each.runs, isBest: same(each.settings, table.best), isOn: (table.frontier || []).some((/** @type {any} */ other) => same(other, each.settings)), error: each.error || "" };
  });
  const measures = measuresOf(rows), goal = table.goal || {}, conditions = goal.conditions || [];
  const best = rows.find((/** @type {SweepRow} */ each) => each.isBest), texts = conditions.map((/** @type {any} */ each) => each.text).join(" and ");
  const story = `${rows.length} of ${table.combinations} combinations tried (${table.search}). ${best ? `The ${goal.most ? "most" : "least"} ${goal.measure || measures[0]}${texts ? ` that keeps ${texts} in every run` : ""}: ${best.name}.` : `None keeps ${texts || "what it must"} in every run.`}`;
  return { kind: "tune", story, heads, rows, measures, chosen: measures, x: goal.measure || measures[0] || "", y: measures.find((name) => name !== (goal.measure || measures[0])) || "",
    levels: new Map(conditions.map((/** @type {any} */ each) => [each.name, each.bound])), varied: variedIn(rows) };
}

/** @param {Record<string, any>} told @returns {Map<string, Estimate>} */
const valuesOf = (told) => new Map(Object.entries(told).filter(([, value]) => value && Number.isFinite(value.mean)));

/** @param {SweepRow[]} rows */
const measuresOf = (rows) => [...new Set(rows.flatMap((each) => [...each.values.keys()]))];

/** Measures that tell rows from each other, or seeds, each in another way. @param {SweepRow[]} rows @param {string[]} measures */
function telling(rows, measures) {
  const known = new Set();
  return measures.filter((name) => {
    const values = rows.map((each) => each.values.get(name)), text = JSON.stringify(values);
    const isSame = new Set(values.map((each) => each && each.mean)).size === 1 && values.every((each) => !each || (each.high ?? each.mean) === each.mean);
    if (isSame || known.has(text)) return false;
    return Boolean(known.add(text));
  }).slice(0, MOST);
}

/** Settings with more than one value. @param {SweepRow[]} rows */
function variedIn(rows) {
  const names = [...new Set(rows.flatMap((each) => [...each.settings.keys()]))];
  return names.filter((name) => new Set(rows.map((each) => each.settings.get(name))).size > 1);
}

/** `a=1 b=2`, as a matrix tells settings. @param {string} text @returns {[string, string][]} */
const pairs = (text) => String(text || "").split(/[ ,]+(?=[\w.[\]/-]+=)/).filter((each) => each.includes("=")).map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]);

/** As much of the end of each path as tells it from the others. @param {string[]} paths */
export function shortNames(paths) {
  if (!paths.length) return paths;
  const parts = paths.map((path) => path.split("."));
  for (let length = 1; length < Math.max(...parts.map((each) => each.length)); length++) {
    const names = parts.map((each) => each.slice(-length).join("."));
    if (new Set(names).size === names.length) return names;
  }
  return paths;
}

/** Where values of a setting stand on an axis: by their size if all are amounts, else in the order of their coming. @param {string[]} values @returns {Map<string, number>} */
export function placesOf(values) {
  const different = [...new Set(values)], areAmounts = different.every((each) => /^-?[0-9.]+([a-zA-Z]{1,2})?$/.test(each));
  return new Map(different.map((each, place) => [each, areAmounts && !/[hs]$/.test(each) ? amount(each) : place]));
}
