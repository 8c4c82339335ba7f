// Decisions on the left, the explanation of the chosen one on the right.

import { bar, counted, h, number } from "./dom.js";

export class Explorer {
  constructor(place, decisions) {
    this.decisions = decisions;
    this.tag = "";
    this.text = "";
    this.list = h("div", { class: "list", role: "list" });
    this.detail = h("div", { class: "detail", id: "detail", tabindex: -1, "aria-live": "polite" });
    this.find = h("input", { type: "search", placeholder: "Find a pod or a node", "aria-label": "Find a pod or a node",
      on: { input: (event) => { this.text = event.target.value.trim().toLowerCase(); this.show(); } } });
    this.chips = h("div", { class: "chips" });
    place.replaceChildren(h("div", { class: "picker" }, h("div", { class: "find" }, this.find, this.chips), this.list), this.detail);
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.show();
    this.choose(0);
  }

  tags() {
    const counts = new Map();
    for (const each of this.decisions) for (const tag of each.tags || []) counts.set(tag, (counts.get(tag) || 0) + 1);
    return [...counts];
  }

  show() {
    const chip = (tag, text) => h("button", { type: "button", "aria-pressed": String(this.tag === tag),
      on: { click: () => { this.tag = tag; this.show(); } } }, text);
    const tags = this.tags();
    this.chips.replaceChildren(...(tags.length > 1 ? [chip("", "all"), ...tags.map(([tag, count]) => chip(tag, `${tag} ${count}`))] : []));
    const shown = this.decisions.map((each, place) => [each, place]).filter(([each]) => this.matches(each));
    this.list.replaceChildren(...shown.map(([each, place]) => this.item(each, place)));
    if (!shown.length) this.list.append(h("p", { class: "empty" }, "None of the decisions kept here. kubescene explain pod NAME --run DIR knows all."));
  }

  matches(each) {
    if (this.tag && !(each.tags || []).includes(this.tag)) return false;
    return !this.text || `${each.pod} ${each.node || ""} ${each.message || ""}`.toLowerCase().includes(this.text);
  }

  item(each, place) {
    const when = [each.step, each.time].filter(Boolean).join(" · ");
    const came = each.node ? h("span", { class: "came" }, `${when} · ${each.node}`) : h("span", { class: "came no" }, `${when} · ${each.message || "waits"}`);
    return h("button", { type: "button", "data-place": place, "aria-current": String(place === this.chosen), on: { click: () => this.choose(place) } },
      h("span", { class: "pod" }, each.pod, (each.tags || []).map((tag) => h("span", { class: `tag ${tag.split(" ")[0]}` }, tag))), came);
  }

  key(event) {
    const way = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = way && document.activeElement[way];
    if (!next || next.tagName !== "BUTTON") return;
    event.preventDefault();
    next.focus();
    this.choose(Number(next.dataset.place));
  }

  choose(place) {
    this.chosen = place;
    for (const item of this.list.querySelectorAll("button")) item.setAttribute("aria-current", String(Number(item.dataset.place) === place));
    this.detail.replaceChildren(...this.explained(this.decisions[place]));
    this.detail.scrollTop = 0;
  }

  explained(each) {
    const waits = each.nominated ? ` waits until ${each.nominated} has made room` : " waits";
    const outcome = each.node ? h("span", { class: "to" }, ` → ${each.node}`) : h("span", { class: "no" }, waits);
    return [
      h("h3", {}, h("span", { class: "mono" }, each.pod), outcome),
      this.siblings(each),
      h("p", { class: "sentence" }, sentence(each)),
      each.rows && each.rows.length ? scoreTable(each) : null,
      refusals(each),
      preempting(each),
      each.told && each.told.length ? [h("h4", {}, "Extenders and waits"), h("ul", {}, each.told.map((line) => h("li", {}, line)))] : null,
      each.traceback ? [h("h4", {}, "A plugin raised"), h("pre", {}, each.traceback)] : null,
    ].flat().filter(Boolean);
  }

  // Other attempts at the same pod that are kept.
  siblings(each) {
    const same = this.decisions.map((other, place) => [other, place]).filter(([other]) => other.pod === each.pod);
    if (same.length < 2) return null;
    same.sort((a, b) => (a[0].attempt || 1) - (b[0].attempt || 1) || a[1] - b[1]);
    return h("div", { class: "attempts" }, same.map(([other, place]) => h("button", { type: "button", "aria-pressed": String(other === each),
      on: { click: () => this.choose(place) } }, `attempt ${other.attempt || 1} · ${[other.step, other.time].filter(Boolean).join(" · ")} · ${other.node ? "bound" : "waits"}`)));
  }
}

// Why it came so, in one sentence.
export function sentence(each) {
  const attempt = (each.attempts || 1) > 1 ? `, attempt ${each.attempt || 1} of ${each.attempts}` : "";
  const when = `At ${each.step === "0.0" ? each.time : `step ${each.step}${each.time ? ` (${each.time})` : ""}`}${attempt}: `;
  const fitting = `${number(each.feasible || 0)} of ${counted(each.evaluated || 0, "node")} that were looked at fit.`;
  if (!each.node) return `${when}${each.message || "no node took it"}`;
  if (!each.explained) return `${when}bound to ${each.node}. ${fitting} Scores were not kept: spec.simulation.explain: Full keeps them.`;
  if (!(each.plugins || []).length) return `${when}${each.node} was the only node that fitted, so it was not scored. ${fitting}`;
  const [first, second] = [each.rows.find((row) => row.node === each.node), each.rows.find((row) => row.node !== each.node)];
  if (!first || !second) return `${when}${each.node} won. ${fitting}`;
  const ahead = first.total - second.total;
  if (!ahead) return `${when}${each.node} won with ${number(first.total)}, level with ${second.node}: drawn by lot among the best. ${fitting}`;
  if (ahead < 0) return `${when}${each.node} was taken with ${number(first.total)}, although ${second.node} has ${number(second.total)}. ${fitting}`;
  return `${when}${each.node} won with ${number(first.total)}, ${number(ahead)} ahead of ${second.node} (${moved(each, first, second)}). ${fitting}`;
}

function moved(each, first, second) {
  const parts = each.plugins.map((plugin, place) => [plugin, first.scores[place] - second.scores[place]]).filter(([, by]) => by);
  parts.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  return parts.slice(0, 4).map(([plugin, by]) => `${plugin} ${by > 0 ? "+" : "−"}${number(Math.abs(by))}`).join(", ");
}

// How often a plugin counts, where that is not once.
const weight = (times) => (times > 1 ? h("small", {}, ` ×${times}`) : null);

export function scoreTable(each) {
  const plugins = each.plugins || [];
  const most = Math.max(1, ...each.rows.flatMap((row) => row.scores || []));
  const score = (value) => h("td", { class: "n" }, h("span", { class: "score" }, bar((100 * value) / most), h("span", { class: value ? "" : "zero" }, number(value))));
  const head = h("tr", {}, h("th", { scope: "col" }, "node"), plugins.length ? h("th", { scope: "col", class: "n" }, "total") : null,
    plugins.map((plugin, place) => h("th", { scope: "col", class: "n" }, plugin.replace(/([a-z])(?=[A-Z])/g, "$1\u200b"), weight((each.weights || [])[place]))));
  const rows = each.rows.map((row) => h("tr", { class: row.node === each.node ? "won" : null }, h("td", {}, row.node),
    plugins.length ? h("td", { class: "n total" }, row.total == null ? "" : number(row.total)) : null, (row.scores || []).map(score)));
  const left = (each.feasible || 0) - each.rows.length;
  return [h("div", { class: "wide" }, h("table", { class: "scores" }, h("thead", {}, head), h("tbody", {}, rows))),
    left > 0 ? h("p", { class: "more" }, `and ${counted(left, "more node")} that fitted`) : null];
}

export function refusals(each) {
  if (!(each.refusals || []).length) return null;
  return [h("h4", {}, "Refused"), ...each.refusals.map((group) => h("div", { class: "refusal" }, h("span", { class: "many" }, counted(group.total, "node")),
    h("span", {}, h("b", {}, group.plugin), group.reasons ? `: ${group.reasons}` : ""),
    h("span", { class: "names" }, group.nodes.join(", "), group.total > group.nodes.length ? ` and ${number(group.total - group.nodes.length)} more` : "")))];
}

export function preempting(each) {
  if (!each.preemption) return null;
  const rows = (each.trials || []).map((trial) => h("tr", { class: trial.verdict === "chosen" ? "won" : null }, h("td", {}, trial.node), h("td", {}, trial.verdict),
    h("td", {}, (trial.victims || []).join(", ")), h("td", { class: "n" }, trial.violations ? number(trial.violations) : "")));
  const head = h("tr", {}, ["node", "verdict", "would lose"].map((name) => h("th", { scope: "col" }, name)), h("th", { scope: "col", class: "n" }, "budgets violated"));
  return [h("h4", {}, "Preemption"), h("p", {}, each.preemption),
    rows.length ? h("div", { class: "wide" }, h("table", { class: "scores" }, h("thead", {}, head), h("tbody", {}, rows))) : null];
}
