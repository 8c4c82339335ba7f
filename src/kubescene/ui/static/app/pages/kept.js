// The run of a scenario that is kept, though its Scenario may be gone: the same slider over the same facts.

import { begun, ScenarioPage } from "./scenario.js";
import { ask } from "../api.js";

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const [id] = visit.params, path = `/simulator/v1/runs/${id}`, { name } = await ask(path);
  return begun(new ScenarioPage(place, visit, { name: `${name} (${id})`, about: { kept: id }, facts: () => `${path}/files/timeline.jsonl`, run: id }));
}
