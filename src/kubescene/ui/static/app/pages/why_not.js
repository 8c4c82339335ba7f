// One pod and one node: what each plugin said of it, beside the node that won, in every attempt that is kept.

import { counted, fill, h, number } from "../../shared/dom.js";
import { ask } from "../api.js";
import { asBytes, asCpu } from "../quantities.js";
import { nodeRow } from "../reduced.js";
import { address } from "../router.js";
import { scoreOf } from "../scores.js";
import { mark } from "../world.js";
import { attemptsAt, orNothing, wordsOf } from "./pod.js";

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const [namespace, name, node] = visit.params, { query, router } = visit;
  const [attempts, object] = await Promise.all([attemptsAt(namespace, name, query), orNothing(ask(`/api/v1/nodes/${encodeURIComponent(node)}`))]);
  const about = [...query].filter(([each]) => each === "run" || each === "kept");
  const draw = (/** @type {Map<string, string>} */ chosen) => {
    const attempt = attempts[Math.min(attempts.length, Number(chosen.get("attempt")) || attempts.length) - 1];
    place.className = "reading";
    fill(place, h("p", { class: "crumbs" }, h("a", { href: "/ui/cluster" }, "Cluster"), ` / ${namespace} / `, h("a", { href: address(["pod", namespace, name], about) }, name), " /"),
      h("h1", {}, attempt && attempt.node === node ? `Why ${node}?` : `Why not ${node}?`),
      h("p", { class: "story", id: "why" }, attempt ? wordsOf(attempt, node) : `Nothing is kept of why ${name} is where it is.`),
      object ? told(nodeRow(object)) : h("p", { class: "more" }, `There is no node ${node} now.`),
      attempt && beside(attempt, node),
      attempts.length > 1 && h("section", {}, h("h2", {}, "Every attempt that is kept"), h("table", { class: "compact", id: "attempts" }, h("tbody", {}, attempts.map((each) => h("tr", { class: each === attempt ? "won" : null },
        h("td", {}, h("button", { type: "button", class: "key", "aria-pressed": String(each === attempt), on: { click: () => { router.note({ attempt: String(each.place) }, { push: true }); draw(router.query); } } }, `attempt ${each.place}`)),
        h("td", {}, each.step === "0.0" ? each.time : `step ${each.step}`), h("td", {}, wordsOf(each, node))))))));
  };
  draw(query);
  return { title: `${name} on ${node}`, changed: draw };
}

/** @param {import("../reduced.js").NodeRow} row */
function told(row) {
  const why = mark(row);
  return h("p", { class: "identity" }, h("a", { href: address(["cluster"], [["sel", row.name]]) }, row.name), h("span", {}, `offers ${asCpu(row.cpu)} CPU, ${asBytes(row.memory)}, room for ${counted(row.pods, "pod")}`),
    why && h("span", { class: "tag waits" }, why), row.taints.length > 0 && h("span", {}, `tainted ${row.taints.join(", ")}`));
}

/** What each plugin gave, and what it gave the winner. @param {any} attempt @param {string} name */
function beside(attempt, name) {
  const own = attempt.verdictOf.get(name), won = attempt.verdictOf.get(attempt.node), { plugins, weights } = attempt;
  if (!own || !own.scores || !plugins.length) return null;
  const other = won && won.scores && name !== attempt.node ? won : null;
  const signed = (/** @type {number} */ by) => (by ? `${by > 0 ? "+" : "−"}${number(Math.abs(by))}` : "0");
  const head = ["plugin", "raw", "normalised", "weight", "weighted", ...(other ? [attempt.node, "difference"] : [])];
  const numbers = plugins.map((/** @type {string} */ plugin, /** @type {number} */ at) => {
    const [raw, normalised, weighted] = ["raw", "normalised", ""].map((scale) => scoreOf(attempt, own, at, scale)), theirs = other ? scoreOf(attempt, other, at, "") : 0;
    return [plugin, number(raw), number(normalised), `×${number(weights[at] || 1)}`, number(weighted), ...(other ? [number(theirs), signed(weighted - theirs)] : [])];
  });
  const total = ["total", "", "", "", number(own.total || 0), ...(other ? [number(other.total || 0), signed((own.total || 0) - (other.total || 0))] : [])];
  return h("section", {}, h("h2", {}, "What plugins gave it"), h("div", { class: "wide" }, h("table", { class: "scores", id: "plugins" }, h("thead", {}, h("tr", {}, head.map((each, at) => h("th", { scope: "col", class: at ? "n" : null }, each)))),
    h("tbody", {}, [...numbers, total].map((row) => h("tr", { class: row === total ? "won" : null }, row.map((/** @type {string} */ cell, /** @type {number} */ at) => h("td", { class: at ? "n" : null }, cell))))))));
}
