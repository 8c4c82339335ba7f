// An address that no page has.

import { h } from "../../shared/dom.js";

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export function show(place, visit) {
  place.replaceChildren(h("h1", {}, "No such page"), h("p", {}, `Nothing is at ${visit.params[0]}. `, h("a", { href: "/ui" }, "Start"), " has what there is."));
  return { title: "No such page" };
}
