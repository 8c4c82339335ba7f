// YAML that somebody brings: a Scenario is played, anything else is put into the cluster, all of it or nothing.

import { counted, h } from "../shared/dom.js";
import { ask, ApiError } from "./api.js";
import { address } from "./router.js";

export const SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios";

/** What a question is about, if not the cluster as it stands: kept while the pages are open. */
export const asked = { text: "", name: "" };

export function forget() { Object.assign(asked, { text: "", name: "" }); }

/** @param {string} text @param {import("./router.js").Router} router @param {HTMLElement} said */
export async function bring(text, router, said) {
  said.className = "";
  said.replaceChildren();
  if (!text.trim()) {
    tell(said, "There is nothing to play yet: paste some YAML.");
    return;
  }
  try {
    if (/^kind:\s*["']?Scenario\b/m.test(text) || /"kind"\s*:\s*"Scenario"/.test(text)) {
      const made = await ask(SCENARIOS, { method: "POST", body: text });
      await router.go(address(["scenario", made.metadata.name]));
    } else {
      const { imported } = await ask("/simulator/v1/import", { method: "POST", body: text });
      await router.go("/ui/cluster");
      said.textContent = `${counted(imported, "object")} put into the cluster`;
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const causes = ((error.status && error.status.details) || {}).causes || [];
    tell(said, error.message, causes.map((/** @type {any} */ cause) => `${cause.field ? `${cause.field}: ` : ""}${cause.message}`));
  }
}

/** @param {HTMLElement} said @param {string} text @param {string[]} [causes] */
function tell(said, text, causes = []) {
  said.className = "said";
  said.replaceChildren(text, ...(causes.length > 1 ? [h("ul", {}, causes.map((each) => h("li", {}, each)))] : []));
}
