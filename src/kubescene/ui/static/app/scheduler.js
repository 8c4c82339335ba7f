// How the scheduler is configured: profiles as tables, the whole as JSON, checked by the server before it is taken.

import { fill, h } from "../shared/dom.js";
import { ask, ApiError } from "./api.js";
import { toast } from "./toasts.js";

const PATH = "/simulator/v1/schedulerconfiguration";

/** @param {HTMLElement} place */
export async function show(place) {
  const field = /** @type {HTMLTextAreaElement} */ (h("textarea", { id: "yaml", rows: 28, spellcheck: "false", "aria-label": "KubeSchedulerConfiguration" }));
  const said = h("div", { id: "said", role: "alert" }), tables = h("div", { id: "profiles" });
  const read = async () => {
    const told = await ask(PATH);
    field.value = `${JSON.stringify(told, null, 2)}\n`;
    fill(tables, profiles(told));
  };
  const apply = async () => {
    said.className = "";
    fill(said);
    try {
      await ask(PATH, { method: "POST", body: field.value });
      toast("The scheduler has the new configuration.");
      await read();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      said.className = "said";
      fill(said, error.message);
    }
  };
  place.className = "reading";
  fill(place, h("h1", {}, "Scheduler"), h("p", { class: "story" }, "The configuration in force, complete. Whatever is changed takes effect as a whole, or not at all; the last scenario can be played again with it."), said,
    h("div", { class: "editing" }, h("div", { class: "halves" }, field, h("p", { class: "row" }, h("button", { type: "button", id: "apply", class: "primary", on: { click: apply } }, "Apply"), h("button", { type: "button", on: { click: read } }, "Read again"))), tables));
  await read();
  return { title: "Scheduler" };
}

/** Plugins by profile, with the weights of those that score. @param {any} told */
function profiles(told) {
  return (told.profiles || []).map((/** @type {any} */ profile) => {
    const points = profile.plugins || {};
    const named = /** @type {Map<string, {points: string[], weight: number}>} */ (new Map());
    for (const [point, set] of Object.entries(points)) {
      for (const each of /** @type {any} */ (set).enabled || []) {
        const known = named.get(each.name) || { points: [], weight: 0 };
        known.points.push(point);
        known.weight = each.weight || known.weight;
        named.set(each.name, known);
      }
    }
    return h("section", {}, h("h2", {}, profile.schedulerName), h("table", { class: "compact" }, h("thead", {}, h("tr", {}, h("th", {}, "plugin"), h("th", { class: "n" }, "weight"), h("th", {}, "at"))),
      h("tbody", {}, [...named].map(([name, each]) => h("tr", {}, h("td", {}, name), h("td", { class: "n" }, each.weight || ""), h("td", {}, each.points.join(", ")))))));
  });
}
