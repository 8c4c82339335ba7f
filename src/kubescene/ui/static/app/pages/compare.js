// Two runs side by side: how they end, which pods stand elsewhere, and which plugin moved them.

import { Cursor } from "../../shared/charts.js";
import { byId, fill, h, number } from "../../shared/dom.js";
import { OverTime } from "../../shared/over_time.js";
import { ask, linesOf } from "../api.js";
import { address } from "../router.js";
import { Story } from "../story.js";
import { Tiles } from "../tiles.js";
import { World } from "../world.js";

const LISTED = 300;
const NEWEST = 100;

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const page = new ComparePage(place, visit);
  await page.begin();
  return { title: "Compare", leave: () => page.leave(), changed: () => page.begin() };
}

class ComparePage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
  constructor(place, visit) {
    this.router = visit.router;
    this.place = place;
    this.stop = new AbortController();
    /** @type {Tiles[]} */
    this.maps = [];
    place.className = "comparing";
  }

  leave() {
    this.stop.abort();
    for (const each of this.maps) each.leave();
  }

  async begin() {
    const { runs } = await ask(`/simulator/v1/runs?kind=scenario&limit=${NEWEST}`);
    const query = this.router.query, b = query.get("b") || (runs[0] || {}).id || "", a = query.get("a") || likest(runs, b);
    const choice = (/** @type {"a" | "b"} */ side, /** @type {string} */ given) => h("label", {}, side.toUpperCase(), h("select", { id: side, on: { change: (/** @type {any} */ event) => { this.router.note({ a, b, [side]: event.target.value }, { push: true }); this.begin(); } } },
      runs.map((/** @type {any} */ each) => h("option", { value: each.id, selected: each.id === given }, `${each.id} · ${each.name} · ${each.phase}`))));
    const told = h("div", { id: "told" }), focused = document.activeElement && document.activeElement.id;
    fill(this.place, h("h1", {}, "Compare two runs"), runs.length < 2 ? h("p", {}, "There are not two runs yet: play a scenario, change something, and play it again.") : h("div", { class: "controls" }, choice("a", a), choice("b", b)), told);
    if (focused === "a" || focused === "b") /** @type {HTMLElement} */ (byId(focused)).focus();
    if (runs.length > 1) await this.tell(told, a, b);
  }

  /** @param {HTMLElement} told @param {string} a @param {string} b */
  async tell(told, a, b) {
    const found = await ask(`/simulator/v1/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
    const moved = found.placed || [], inputs = found.inputs || [], measures = (found.measures || []).filter((/** @type {any} */ each) => each.a !== each.b);
    fill(told, h("p", { class: "story", id: "verdict" }, moved.length ? `${number(moved.length)} ${moved.length === 1 ? "pod stands" : "pods stand"} elsewhere.` : "No pod stands elsewhere."),
      h("div", { class: "sides" }, this.map("A", a, moved.map((/** @type {any} */ each) => each.pod)), this.map("B", b, moved.map((/** @type {any} */ each) => each.podInB || each.pod))),
      h("section", { id: "over-time" }),
      inputs.length > 0 && h("section", {}, h("h2", {}, "What they were given"), this.table(["what", "A", "B"], inputs.map((/** @type {any} */ each) => [each.what, each.a || "", each.b || ""]))),
      moved.length > 0 && h("section", {}, h("h2", {}, "Who stands elsewhere"), this.table(["pod", "in A", "in B", "because of", "by"], moved.slice(0, LISTED).map((/** @type {any} */ each) => [
        h("a", { href: address(["pod", ...each.pod.split("/")], [["kept", a]]) }, each.pod), each.nodeInA || "waits", each.nodeInB || "waits", each.cause || "", (each.attribution || {}).plugin || ""]))),
      measures.length > 0 && h("section", {}, h("h2", {}, "Measures that differ"), this.table(["measure", "A", "B"], measures.map((/** @type {any} */ each) => [each.measure, shown(each.a), shown(each.b)]))));
    await this.tellOverTime(told, a, b);
  }

  /** B over virtual time, with A as pale lines. @param {HTMLElement} told @param {string} a @param {string} b */
  async tellOverTime(told, a, b) {
    const [under, over] = await Promise.all([a, b].map((id) => ask(`/simulator/v1/runs/${encodeURIComponent(id)}/over-time`)));
    const place = told.querySelector("#over-time");
    if (!place || !over.charts || !under.charts) return;
    const shown = new OverTime(new Cursor(), undefined, "in A");
    place.replaceChildren(h("h2", {}, "Over time", h("small", {}, "B, and A as pale lines; what was decided is of B")), shown.element);
    shown.show({ ...over, end: Math.max(over.end, under.end) }, under);
  }

  /** How a run ends: pods that stand elsewhere in the other are blue. @param {string} side @param {string} id @param {string[]} moved */
  map(side, id, moved) {
    const place = h("div", { class: "map" }), lit = new Set(moved), world = new World(), story = new Story(world);
    const tiles = new Tiles(place, { chosen: () => {}, pointed: () => {} });
    this.maps.push(tiles);
    tiles.podColours = { names: new Map([["moved", "#0072b2"]]), of: (pod) => (lit.has(pod.key) ? "moved" : "other") };
    const read = async () => {
      for await (const fact of linesOf(`/simulator/v1/runs/${encodeURIComponent(id)}/files/timeline.jsonl`, this.stop.signal)) story.read(fact);
      story.go(story.moments.length - 1);
      const names = new Intl.Collator("en", { numeric: true });
      const nodes = [...world.nodes.values()].sort((x, y) => names.compare(x.name, y.name));
      tiles.show(nodes, [{ name: "", count: nodes.length }]);
    };
    read().catch((error) => { if (!this.stop.signal.aborted) fill(place, h("p", { class: "said" }, error.message)); });
    return h("figure", { class: "side" }, h("figcaption", {}, h("b", {}, side), ` ${id}`), place);
  }

  /** @param {string[]} heads @param {any[][]} rows */
  table(heads, rows) {
    return h("div", { class: "wide" }, h("table", { class: "compact" }, h("thead", {}, h("tr", {}, heads.map((each) => h("th", {}, each)))), h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
  }
}

/** The run that says most beside another: one of the same scenario, or of that which it was forked from. @param {any[]} runs @param {string} id */
function likest(runs, id) {
  const base = (/** @type {any} */ run) => (run ? run.name.replace(/-\d+$/, "") : ""), others = runs.filter((each) => each.id !== id);
  const own = base(runs.find((each) => each.id === id));
  return (others.find((each) => base(each) === own) || others[0] || {}).id || "";
}

/** @param {number | null | undefined} value */
const shown = (value) => (value === null || value === undefined ? "none" : Number.isInteger(value) ? number(value) : String(Math.round(value * 1000) / 1000));
