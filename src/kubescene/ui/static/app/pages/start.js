// Where somebody begins who has nothing yet: play an example, bring a file, look at what was played.

import { fill, h } from "../../shared/dom.js";
import { ask } from "../api.js";
import { asked, bring } from "../bringing.js";
import { Editor } from "../editor.js";
import { address } from "../router.js";
import { Schema } from "../schema.js";

const EXAMPLES = [
  ["rollout.yaml", "A Deployment on three nodes", "Eight pods are placed; then the Deployment grows beyond what there is room for. See who waits, and why."],
  ["preemption.yaml", "A pod that matters more", "A full cluster, and a pod with a higher priority: somebody has to go."],
  ["zone.yaml", "A zone is lost", "Twelve nodes in three zones; one zone goes silent, and five minutes later its pods are elsewhere."],
];
const RUNS = 8;

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const field = new Editor({ id: "yaml", name: "YAML", rows: 12, schema: new Schema() });
  field.field.placeholder = "Paste a Scenario, manifests, or the output of kubectl get -o yaml; or drop a file here.";
  const said = h("div", { id: "said", role: "alert" });
  const take = () => bring(field.value, visit.router, said);
  const question = () => {
    Object.assign(asked, { text: field.value.trim() ? field.value : "", name: "" });
    visit.router.go("/ui/what-if");
  };
  const drop = async (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    const file = event.dataTransfer && event.dataTransfer.files[0];
    if (file) field.value = await file.text();
  };
  const play = async (/** @type {string} */ file) => bring(await ask(`/ui/static/app/examples/${file}`), visit.router, said);
  const runs = h("section", { id: "runs" });
  fill(place, 
    h("h1", {}, "Rehearse a cluster"),
    h("p", { class: "story" }, "Describe what happens; Kubescene plays it through the scheduler and the controllers on a virtual clock, and explains every decision."),
    h("section", {}, h("h2", {}, "Play an example"), h("div", { class: "cards" }, EXAMPLES.map(([file, name, about]) =>
      h("button", { type: "button", class: "card", "data-example": file, on: { click: () => play(file) } }, h("b", {}, name), h("span", {}, about))),
      h("a", { class: "card", href: "/ui/traffic" }, h("b", {}, "Run the first traffic"), h("span", {}, "Requests, replicas and an autoscaler: change a number, and see the latency move.")))),
    h("section", {}, h("h2", {}, "Bring your own"), h("div", { class: "bring", on: { dragover: (/** @type {Event} */ event) => event.preventDefault(), drop } }, field.element,
      h("p", { class: "row" }, h("button", { type: "button", id: "take", class: "primary", on: { click: take } }, "Play, or put into the cluster"),
        h("button", { type: "button", id: "question-it", title: "It is not put into the cluster: questions are answered in a copy", on: { click: question } }, "Ask what if about it"),
        h("input", { type: "file", id: "file", accept: ".yaml,.yml,.json", "aria-label": "Open a file", on: { change: async (/** @type {any} */ event) => { const [file] = event.target.files; if (file) field.value = await file.text(); } } })), said)),
    runs);
  await tellRuns(runs);
  return { title: "Start" };
}

/** @param {HTMLElement} place */
async function tellRuns(place) {
  const { runs } = await ask(`/simulator/v1/runs?limit=${RUNS}`);
  if (!runs.length) return;
  const link = (/** @type {any} */ run) => (run.kind === "traffic" ? `/ui/traffic/${run.id.split("-")[1]}` : address(["run", run.id]));
  const rows = runs.map((/** @type {any} */ run) => h("tr", {}, h("td", {}, h("a", { href: link(run) }, run.id)), h("td", {}, run.name || ""), h("td", {}, run.phase || ""), h("td", {}, (run.created || "").replace("T", " ").replace("Z", ""))));
  fill(place, h("h2", {}, "Played before"), h("table", {}, h("thead", {}, h("tr", {}, ["run", "name", "phase", "when"].map((each) => h("th", {}, each)))), h("tbody", {}, rows)),
    runs.filter((/** @type {any} */ run) => run.kind === "scenario").length > 1 && h("p", {}, h("a", { href: "/ui/compare" }, "Compare two of them")));
}
