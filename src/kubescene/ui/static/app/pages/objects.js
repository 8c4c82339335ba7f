// Every kind that is served, in kubectl's own columns; any label as one more; long lists are drawn as far as they are seen.

import { byId, counted, fill, h, number } from "../../shared/dom.js";
import { ask } from "../api.js";
import { filterOf } from "../filter.js";
import { kindsOf } from "../keys.js";
import { address } from "../router.js";
import { isMeant, toast } from "../toasts.js";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PAGE = 500;
const ROW = 27;
const SPARE = 20;
const AGAIN_MS = 2000;

/** The path of a kind, or of one object of it. @param {string} group @param {string} version @param {string} plural @param {string} [namespace] @param {string} [name] */
export function pathOf(group, version, plural, namespace = "", name = "") {
  const part = encodeURIComponent;
  const base = group === "core" ? `/api/${part(version)}` : `/apis/${part(group)}/${part(version)}`;
  return `${base}${namespace ? `/namespaces/${part(namespace)}` : ""}/${part(plural)}${name ? `/${part(name)}` : ""}`;
}

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const [group, version, plural] = visit.params;
  if (!plural) return showKinds(place);
  const page = new ObjectsPage(place, visit, group, version, plural);
  await page.look();
  return { title: plural, leave: () => page.leave() };
}

/** @param {HTMLElement} place */
async function showKinds(place) {
  const kinds = await kindsOf();
  const groups = [...new Set(kinds.map((each) => each.group))].sort((a, b) => Number(b === "core") - Number(a === "core") || (a < b ? -1 : 1));
  place.className = "reading";
  fill(place, h("h1", {}, "Objects"), h("p", { class: "more" }, `${counted(kinds.length, "kind")} are served.`),
    h("div", { class: "kinds" }, groups.map((group) => h("section", {}, h("h2", {}, group), h("ul", {}, kinds.filter((each) => each.group === group).map((each) => h("li", {}, h("a", { href: each.href }, each.kind), h("small", {}, ` ${each.words.slice(2).join(", ")}`))))))));
  return { title: "Objects" };
}

class ObjectsPage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit @param {string} group @param {string} version @param {string} plural */
  constructor(place, visit, group, version, plural) {
    Object.assign(this, { place, router: visit.router });
    this.router = visit.router;
    this.group = group;
    this.version = version;
    this.plural = plural;
    this.query = visit.query;
    this.text = visit.query.get("q") || "";
    this.sortBy = visit.query.get("sort") || "";
    this.isWide = visit.query.get("wide") === "true";
    this.labels = (visit.query.get("cols") || "").split(",").filter(Boolean);
    /** @type {any[]} */
    this.rows = [];
    /** @type {any[]} */
    this.columns = [];
    /** @type {Set<string>} */
    this.picked = new Set();
    this.timer = 0;
    this.seen = "";
    this.head = h("thead", {});
    this.body = h("tbody", {});
    this.count = h("span", { class: "more", "aria-live": "polite" });
    this.remove = h("button", { type: "button", id: "delete", hidden: true, on: { click: () => this.deletePicked() } }, "Delete");
    this.scroller = h("div", { class: "scroller tall", tabindex: 0, role: "region", "aria-label": plural, on: { scroll: () => this.draw() } }, h("table", { class: "compact objects" }, this.head, this.body));
    place.className = "filled";
    fill(place, h("div", { class: "controls" }, h("h1", {}, plural), h("input", { type: "search", id: "filter", value: this.text, placeholder: "filter: name, app=web, ns=default, !word", "aria-label": "Filter",
      on: { input: (/** @type {any} */ event) => { this.text = event.target.value; this.router.note({ q: this.text }); this.arrange(); } } }),
      h("label", {}, "label as a column", h("select", { id: "add-label", on: { change: (/** @type {any} */ event) => this.addLabel(event.target.value) } }, h("option", { value: "" }, "…"))), h("label", {}, h("input", { type: "checkbox", id: "wide", checked: this.isWide, title: "All that kubectl get -o wide prints", on: { change: (/** @type {any} */ event) => this.widen(event.target.checked) } }), " more columns"), this.remove, this.count), this.scroller);
  }

  leave() {
    clearTimeout(this.timer);
    this.isGone = true;
  }

  /** Read all pages again where the newest revision is another. */
  async look() {
    const path = pathOf(this.group, this.version, this.plural);
    const rows = [];
    let next = "", revision = "";
    do {
      const page = await ask(`${path}?limit=${PAGE}${next ? `&continue=${encodeURIComponent(next)}` : ""}`, { accept: TABLE });
      if (this.isGone) return;
      rows.push(...(page.rows || []));
      this.columns = page.columnDefinitions || this.columns;
      ({ resourceVersion: revision, continue: next = "" } = page.metadata);
    } while (next);
    const told = JSON.stringify([rows.length, ...rows.map((row) => [row.object.metadata.resourceVersion, ...row.cells])]);
    if (told !== this.seen) {
      this.seen = told;
      this.rows = rows;
      this.offer();
      this.arrange();
    }
    void revision;
    this.timer = setTimeout(() => this.look().catch(() => { this.timer = setTimeout(() => this.look(), AGAIN_MS); }), rows.length > PAGE ? 5 * AGAIN_MS : AGAIN_MS);
  }

  offer() {
    const select = /** @type {HTMLSelectElement} */ (byId("add-label"));
    const have = new Set([...select.options].map((option) => option.value));
    const keys = new Set(this.rows.slice(0, 500).flatMap((row) => Object.keys(row.object.metadata.labels || {})));
    for (const key of [...keys].sort()) if (!have.has(key)) select.append(h("option", { value: key }, key));
  }

  /** @param {string} label */
  addLabel(label) {
    this.labels = this.labels.includes(label) ? this.labels.filter((each) => each !== label) : [...this.labels, label].filter(Boolean);
    this.router.note({ cols: this.labels.join(",") });
    this.arrange();
  }

  /** @param {boolean} isWide */
  widen(isWide) {
    this.isWide = isWide;
    this.router.note({ wide: isWide ? "true" : "" });
    this.arrange();
  }

  /** Columns that are shown: kubectl's usual ones, a namespace where there are some, and the labels. */
  get shown() {
    const usual = this.columns.map((column, at) => ({ name: column.name, of: (/** @type {any} */ row) => row.cells[at], priority: column.priority })).filter((column) => this.isWide || !column.priority);
    const hasNamespace = this.rows.some((row) => row.object.metadata.namespace);
    return [...(hasNamespace ? [{ name: "Namespace", of: (/** @type {any} */ row) => row.object.metadata.namespace }] : []), ...usual,
      ...this.labels.map((label) => ({ name: label, of: (/** @type {any} */ row) => { const labels = row.object.metadata.labels || {}; return Object.hasOwn(labels, label) ? labels[label] : ""; } }))];
  }

  arrange() {
    const keeps = filterOf(this.text);
    const subject = (/** @type {any} */ row) => ({ text: `${row.object.metadata.namespace || ""}/${row.cells.join(" ")}`, labels: row.object.metadata.labels || {},
      fields: { name: row.object.metadata.name, ns: row.object.metadata.namespace || "", namespace: row.object.metadata.namespace || "" } });
    this.kept = this.rows.filter((row) => keeps(subject(row)));
    const [name, way] = this.sortBy.startsWith("-") ? [this.sortBy.slice(1), -1] : [this.sortBy, 1];
    const column = this.shown.find((each) => each.name === name);
    const names = new Intl.Collator("en", { numeric: true });
    if (column) this.kept.sort((a, b) => way * names.compare(String(column.of(a) ?? ""), String(column.of(b) ?? "")));
    fill(this.head, h("tr", {}, h("th", {}), this.shown.map((each) => h("th", { scope: "col", "aria-sort": each.name === name ? (way > 0 ? "ascending" : "descending") : "none" },
      h("button", { type: "button", class: "key", on: { click: () => this.sort(each.name) } }, each.name)))));
    this.count.textContent = this.kept.length === this.rows.length ? number(this.rows.length) : `${number(this.kept.length)} of ${number(this.rows.length)}`;
    this.draw();
  }

  /** @param {string} name */
  sort(name) {
    this.sortBy = this.sortBy === name ? `-${name}` : name;
    this.router.note({ sort: this.sortBy });
    this.arrange();
  }

  draw() {
    const rows = this.kept || [], columns = this.shown;
    const room = this.scroller.clientHeight || innerHeight;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE);
    const last = Math.min(rows.length, first + Math.ceil(room / ROW) + 2 * SPARE);
    const gap = (/** @type {number} */ count) => {
      if (!count) return [];
      const row = h("tr", { "aria-hidden": "true" }, h("td", { colspan: columns.length + 1 }));
      /** @type {any} */ (row.firstChild).style.height = `${count * ROW}px`;
      return [row];
    };
    fill(this.body, ...gap(first), ...rows.slice(first, last).map((row) => this.row(row, columns)), ...gap(rows.length - last));
    if (!rows.length) fill(this.body, h("tr", {}, h("td", { colspan: columns.length + 1 }, this.rows.length ? "Nothing matches the filter." : `There are no ${this.plural}.`)));
  }

  /** @param {any} row @param {{name: string, of: (row: any) => any}[]} columns */
  row(row, columns) {
    const { name, namespace, uid } = row.object.metadata;
    const pick = h("input", { type: "checkbox", "aria-label": `Choose ${name}`, on: { change: (/** @type {any} */ event) => this.pick(uid, event.target.checked) } });
    /** @type {any} */ (pick).checked = this.picked.has(uid);
    return h("tr", {}, h("td", {}, pick), columns.map((column) => {
      const told = String(column.of(row) ?? "");
      return h("td", {}, column.name === "Name" ? h("a", { href: this.linkOf(namespace, name) }, told) : told);
    }));
  }

  /** @param {string | undefined} namespace @param {string} name */
  linkOf(namespace, name) {
    if (this.group === "core" && this.plural === "pods" && namespace) return address(["pod", namespace, name]);
    if (this.plural === "scenarios") return address(["scenario", name]);
    return address(["r", this.group, this.version, this.plural, namespace || "-", name]);
  }

  /** @param {string} uid @param {boolean} isPicked */
  pick(uid, isPicked) {
    if (isPicked) this.picked.add(uid);
    else this.picked.delete(uid);
    this.remove.hidden = !this.picked.size;
    this.remove.textContent = `Delete ${number(this.picked.size)}`;
  }

  async deletePicked() {
    const chosen = this.rows.filter((row) => this.picked.has(row.object.metadata.uid)).map((row) => row.object.metadata);
    if (!(await isMeant(`Delete ${counted(chosen.length, "object")}: ${chosen.slice(0, 5).map((each) => each.name).join(", ")}${chosen.length > 5 ? ", …" : ""}?`, "Delete"))) return;
    for (const { namespace, name } of chosen) {
      try {
        await ask(pathOf(this.group, this.version, this.plural, namespace, name), { method: "DELETE" });
      } catch (error) {
        toast(`${name}: ${/** @type {Error} */ (error).message}`, true);
      }
    }
    this.picked.clear();
    this.pick("", false);
    clearTimeout(this.timer);
    await this.look();
  }
}
