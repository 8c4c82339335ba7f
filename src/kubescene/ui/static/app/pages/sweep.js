// Many runs in one table: what a matrix or a search over settings found, with intervals, and as pictures.

import { fill, h } from "../../shared/dom.js";
import { ask } from "../api.js";
import { intervals, lowest, scatter, told, withInterval } from "../plots.js";
import { placesOf, sweepOf } from "../sweeps.js";

const SWEEPS = "/simulator/v1/sweeps";
const MULTIPLES = 12;

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const page = new SweepPage(place, visit);
  await page.begin(visit.params[0]);
  return { title: "Sweeps", changed: (/** @type {Map<string, string>} */ query) => page.draw(query) };
}

class SweepPage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
  constructor(place, visit) {
    this.router = visit.router;
    /** @type {import("../sweeps.js").Sweep | null} */
    this.sweep = null;
    this.said = h("div", { id: "said", role: "alert" });
    this.list = h("p", { class: "row" });
    this.found = h("div", { id: "sweep" });
    place.className = "reading wide-reading";
    fill(place, h("h1", {}, "Sweeps"), this.list, this.said, this.found);
  }

  /** @param {string} id */
  async begin(id) {
    const { sweeps } = await ask(SWEEPS), chosen = id || (sweeps.length === 1 ? sweeps[0].id : "");
    const open = h("input", { type: "file", id: "file", accept: ".json", "aria-label": "Open matrix.json or tune.json", on: { change: async (/** @type {any} */ event) => { const [file] = event.target.files; await this.open(file); event.target.value = ""; } } });
    fill(this.list, sweeps.map((/** @type {any} */ each) => h("a", { href: `/ui/sweeps/${each.id}`, "aria-current": each.id === chosen ? "page" : null }, `${each.name} (${each.kind})`)), h("label", {}, sweeps.length ? "or open a file, matrix.json or tune.json: " : "Open a file, matrix.json or tune.json: ", open));
    if (chosen) this.take((await ask(`${SWEEPS}/${encodeURIComponent(chosen)}`)).table);
    else this.say(sweeps.length ? "Choose one." : "None was given to this server: kubescene ui DIR shows what kubescene matrix and kubescene tune wrote, and so does a file that you open here.", true);
  }

  /** @param {File | undefined} file */
  async open(file) {
    if (!file) return;
    let table = null;
    try { table = JSON.parse(await file.text()); } catch { /* it is told below */ }
    this.take(table);
  }

  /** @param {any} table */
  take(table) {
    this.sweep = sweepOf(table);
    if (this.sweep) this.say("");
    else this.say("This is no matrix.json of kubescene matrix, and no tune.json of kubescene tune.");
    this.draw(this.router.query);
  }

  /** @param {string} text @param {boolean} [isGood] */
  say(text, isGood = false) {
    this.said.className = text ? `said ${isGood ? "good" : ""}` : "";
    this.said.textContent = text;
  }

  /** @param {Map<string, string>} query */
  draw(query) {
    const { sweep } = this;
    if (!sweep) return void fill(this.found);
    const asked = (query.get("measures") || "").split(",").filter((name) => sweep.measures.includes(name)), chosen = asked.length ? asked : sweep.chosen;
    const axis = (/** @type {"x" | "y"} */ name) => (sweep.measures.includes(query.get(name) || "") ? /** @type {string} */ (query.get(name)) : sweep[name]);
    const x = axis("x"), y = axis("y"), rows = sorted(sweep, query.get("sort") || "");
    fill(this.found, h("p", { class: "story", id: "story" }, sweep.story), sweep.measures.length > 1 && this.against(sweep, x, y), this.choice(sweep, chosen),
      h("div", { class: "multiples", id: "multiples" }, this.multiples(sweep, rows, chosen)), this.table(sweep, rows, chosen, query.get("sort") || ""));
  }

  /** One measure against another, such as cost against latency. @param {import("../sweeps.js").Sweep} sweep @param {string} x @param {string} y */
  against(sweep, x, y) {
    const choose = (/** @type {string} */ name, /** @type {string} */ given) => h("label", {}, name === "x" ? "across" : "up", h("select", { id: `axis-${name}`, on: { change: (/** @type {any} */ event) => { this.router.note({ [name]: event.target.value }, { push: true }); this.draw(this.router.query); } } },
      !given && h("option", { value: "" }, "choose a measure"), sweep.measures.map((each) => h("option", { value: each, selected: each === given }, each))));
    const points = sweep.rows.filter((each) => each.values.has(x) && each.values.has(y));
    const isOurs = sweep.kind === "matrix" || x !== sweep.x || y !== sweep.y || sweep.measures.length !== 2;
    const on = isOurs ? lowest(points.map((each) => ({ x: mean(each, x), y: mean(each, y) }))) : points.filter((each) => each.isOn).map((each) => ({ x: mean(each, x), y: mean(each, y) })).sort((a, b) => a.x - b.x);
    const what = isOurs ? "the line: those than which no other is lower in both" : "the line: those than which no other is better in one and not worse in the other";
    return h("section", { id: "frontier" }, h("h2", {}, "One against another"), h("p", { class: "controls" }, choose("y", y), choose("x", x)),
      x && y && x !== y && [scatter({ title: `${y} against ${x}`, x: { name: x }, y: { name: y }, line: on.map((each) => [each.x, each.y]), level: sweep.levels.get(y),
        points: points.map((each) => ({ name: each.name, x: value(each, x), y: value(each, y), tone: each.isKept ? "down" : "up", isBest: each.isBest })) }),
      h("p", { class: "more" }, `${sweep.kind === "tune" ? "Green keeps all conditions, orange does not" : "Green: every run went well and met what was expected"}; ${what}.`)]);
  }

  /** @param {import("../sweeps.js").Sweep} sweep @param {string[]} chosen */
  choice(sweep, chosen) {
    const change = (/** @type {any} */ event) => {
      const next = sweep.measures.filter((name) => (name === event.target.name ? event.target.checked : chosen.includes(name)));
      this.router.note({ measures: next.join(",") });
      this.draw(this.router.query);
      const again = this.found.querySelector("details.measures");
      if (again) again.setAttribute("open", "");
    };
    return h("details", { class: "measures" }, h("summary", {}, `Measures: ${chosen.length} of ${sweep.measures.length}`), h("div", { class: "row" }, sweep.measures.map((name) => h("label", { class: "check" }, h("input", { type: "checkbox", name, checked: chosen.includes(name), on: { change } }), name))));
  }

  /** Small pictures: each measure of all rows; of a search, each measure by each setting. @param {import("../sweeps.js").Sweep} sweep @param {import("../sweeps.js").SweepRow[]} rows @param {string[]} chosen */
  multiples(sweep, rows, chosen) {
    if (sweep.kind === "matrix") return chosen.slice(0, MULTIPLES).map((name) => intervals(name, rows.map((each) => ({ name: each.name, value: each.values.get(name) }))));
    return chosen.flatMap((name) => sweep.varied.map((setting) => {
      const shown = rows.filter((each) => each.values.has(name)), places = placesOf(shown.map((each) => each.settings.get(setting) || ""));
      return scatter({ title: `${name} by ${setting}`, height: 220, x: { name: setting, ticks: [...places].slice(0, 12).map(([text, at]) => [at, text]) }, y: { name }, level: sweep.levels.get(name),
        points: shown.map((each) => ({ name: each.name, x: { mean: places.get(each.settings.get(setting) || "") || 0 }, y: value(each, name), tone: each.isKept ? "down" : "up", isBest: each.isBest })) });
    })).slice(0, MULTIPLES);
  }

  /** @param {import("../sweeps.js").Sweep} sweep @param {import("../sweeps.js").SweepRow[]} rows @param {string[]} chosen @param {string} sort */
  table(sweep, rows, chosen, sort) {
    const by = (/** @type {string} */ name) => { this.router.note({ sort: sort === name ? `-${name}` : sort === `-${name}` ? "" : name }); this.draw(this.router.query); const again = this.found.querySelector(`th button[name="${CSS.escape(name)}"]`); if (again) /** @type {any} */ (again).focus(); };
    const head = (/** @type {string} */ name) => h("th", { "aria-sort": sort === name ? "ascending" : sort === `-${name}` ? "descending" : null }, h("button", { type: "button", class: "key", name, on: { click: () => by(name) } }, `${name}${sort === name ? " ↑" : sort === `-${name}` ? " ↓" : ""}`));
    const hasKept = rows.some((each) => each.kept), cell = (/** @type {import("../sweeps.js").SweepRow} */ row, /** @type {string} */ name) => { const found = row.values.get(name); return h("td", { class: "mono" }, found ? `${withInterval(found)}${found.n !== undefined && found.n < row.runs ? ` (${found.n} of ${row.runs})` : ""}` : "-"); };
    return h("section", {}, h("h2", {}, "All of them"), h("div", { class: "wide" }, h("table", { id: "rows" }, h("thead", {}, h("tr", {}, sweep.heads.map(head), chosen.map(head), h("th", {}, "runs"), hasKept && h("th", {}, "kept in"), h("th", {}, ""))),
      h("tbody", {}, rows.map((row) => h("tr", { class: row.isBest ? "here" : null }, row.words.map((word) => h("td", {}, word)), chosen.map((name) => cell(row, name)), h("td", {}, told(row.runs)), hasKept && h("td", { class: row.isKept ? "" : "bad" }, row.kept),
        h("td", {}, row.isBest ? "best" : row.isOn ? "frontier" : "", row.failed ? h("span", { class: "bad" }, `${row.failed} failed: ${row.error}`) : null)))))),
      h("p", { class: "more" }, "± is the 95 % confidence interval of the mean over seeds."));
  }
}

/** @param {import("../sweeps.js").SweepRow} row @param {string} name */
const value = (row, name) => /** @type {import("../plots.js").Estimate} */ (row.values.get(name));
/** @param {import("../sweeps.js").SweepRow} row @param {string} name */
const mean = (row, name) => value(row, name).mean;

/** Rows by a column, `-` before its name for the largest first; what has no value comes last. @param {import("../sweeps.js").Sweep} sweep @param {string} sort */
function sorted(sweep, sort) {
  const name = sort.replace(/^-/, ""), way = sort.startsWith("-") ? -1 : 1, place = sweep.heads.indexOf(name), words = new Intl.Collator("en", { numeric: true });
  if (place >= 0) return [...sweep.rows].sort((a, b) => way * words.compare(a.words[place], b.words[place]));
  if (!sweep.measures.includes(name)) return sweep.rows;
  return [...sweep.rows].sort((a, b) => Number(b.values.has(name)) - Number(a.values.has(name)) || (a.values.has(name) ? way * (mean(a, name) - mean(b, name)) : 0));
}
