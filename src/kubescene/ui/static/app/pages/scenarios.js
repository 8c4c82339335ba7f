// Scenarios that this server knows, with the phase they are in.

import { h } from "../../shared/dom.js";
import { ask } from "../api.js";
import { SCENARIOS } from "../bringing.js";
import { address } from "../router.js";

const AGAIN_MS = 1000;

/** How a phase is shown. @param {string} phase */
export const toneOf = (phase) => (phase === "Succeeded" ? "good" : phase === "Failed" ? "bad" : phase === "Running" ? "wait" : "plain");

/** @param {HTMLElement} place */
export async function show(place) {
  let timer = 0, isGone = false;
  const body = h("tbody", {});
  place.className = "reading";
  place.replaceChildren(h("h1", {}, "Scenarios"), h("table", {}, h("thead", {}, h("tr", {}, ["name", "phase", "step", "message"].map((each) => h("th", {}, each)))), body), h("p", { class: "more" }, h("a", { href: "/ui" }, "Play another one"), " · ", h("a", { href: "/ui/sweeps" }, "Sweeps: many runs in one table")));
  const look = async () => {
    const { items } = await ask(SCENARIOS);
    if (isGone) return;
    body.replaceChildren(...items.map((/** @type {any} */ each) => {
      const status = each.status || {}, step = status.stepStatus && status.stepStatus.step;
      return h("tr", {}, h("td", {}, h("a", { href: address(["scenario", each.metadata.name]) }, each.metadata.name)), h("td", {}, h("span", { class: `phase ${toneOf(status.phase)}` }, status.phase || "Pending")),
        h("td", {}, step ? `${step.major}.${step.minor}` : ""), h("td", {}, status.message || ""));
    }));
    if (!items.length) body.replaceChildren(h("tr", {}, h("td", { colspan: 4 }, "None yet.")));
    timer = setTimeout(() => look().catch(() => { timer = setTimeout(look, AGAIN_MS); }), AGAIN_MS);
  };
  await look();
  return { title: "Scenarios", leave: () => { isGone = true; clearTimeout(timer); } };
}
