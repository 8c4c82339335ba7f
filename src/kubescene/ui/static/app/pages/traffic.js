// Requests, replicas and autoscalers: a form whose run is made again while it is changed, and its charts.

import { asSeconds, Cursor } from "../../shared/charts.js";
import { byId, fill, h, number } from "../../shared/dom.js";
import { OverTime } from "../../shared/over_time.js";
import { ask, ApiError } from "../api.js";
import { toast } from "../toasts.js";
import { asYaml } from "../yaml.js";

const SECOND = 1e9;
const LATER_MS = 120;
const PRICE = 0.04;
const HPA = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: hpa, namespace: default}
spec:
  minReplicas: 1
  maxReplicas: 10
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: deployment}
`;
const VPA = `apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: my-app-vpa}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: my-app-deployment}
  updatePolicy: {updateMode: Auto}
`;
const TYPES = { hpa: "hpa.v2beta2.autoscaling.k8s.io", vpa: "vpa.v1.autoscaling.k8s.io" };

/**
 * The fields of Skenario's form: id, label, default, the field of the request, and what one of its units is there.
 * @type {[string, string, number, string, number, {min: number, step: number}][]}
 */
const FIELDS = [
  ["runFor", "Simulation Duration (seconds)", 180, "run_for", SECOND, { min: 1, step: 1 }],
  ["initialNumberOfReplicas", "Initial Number Of Replicas", 1, "initial_number_of_replicas", 1, { min: 1, step: 1 }],
  ["launchDelay", "Pod Launch Delay (seconds)", 5, "launch_delay", SECOND, { min: 0.01, step: 0.1 }],
  ["terminateDelay", "Pod Terminate Delay (seconds)", 1, "terminate_delay", SECOND, { min: 0.01, step: 0.1 }],
  ["tickInterval", "Resync Period (seconds)", 15, "tick_interval", SECOND, { min: 1, step: 1 }],
  ["requestTimeoutSec", "Request timeout (in seconds)", 10, "request_timeout_nanos", SECOND, { min: 1, step: 1 }],
  ["requestCPUTimeMillis", "Request CPU time (in milliseconds)", 200, "request_cpu_time_millis", 1, { min: 1, step: 1 }],
  ["requestIOTimeMillis", "Request IO time (in milliseconds)", 200, "request_io_time_millis", 1, { min: 1, step: 1 }],
  ["seed", "Seed", 0, "seed", 1, { min: 0, step: 1 }],
];
/** @type {Record<string, {name: string, config: string, fields: [string, string, number, string, number, {min: number, step: number}][]}>} */
const PATTERNS = {
  golang_rand_uniform: { name: "Uniform", config: "uniform_config", fields: [["uniformConfigNumberOfRequests", "Number of Requests", 100, "number_of_requests", 1, { min: 1, step: 1 }]] },
  step: { name: "Step", config: "step_config", fields: [["stepConfigStepAfter", "Step After (seconds)", 10, "step_after", SECOND, { min: 1, step: 1 }], ["stepConfigRPS", "Step to RPS", 10, "rps", 1, { min: 1, step: 1 }]] },
  ramp: { name: "Ramp", config: "ramp_config", fields: [["rampConfigDeltaV", "Ramp Delta V", 1, "delta_v", 1, { min: 0.1, step: 0.1 }], ["rampConfigMaxRPS", "Ramp Max RPS", 50, "max_rps", 1, { min: 1, step: 1 }]] },
  sinusoidal: { name: "Sinusoidal", config: "sinusoidal_config", fields: [["sinusoidalConfigAmplitude", "Amplitude (RPS)", 1, "amplitude", 1, { min: 1, step: 1 }], ["sinusoidalConfigPeriod", "Period (seconds)", 50, "period", SECOND, { min: 1, step: 1 }]] },
};

/** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
export async function show(place, visit) {
  const page = new TrafficPage(place, visit);
  await page.begin(visit.params[0]);
  return { title: "Traffic", leave: () => page.leave() };
}

class TrafficPage {
  /** @param {HTMLElement} place @param {import("../router.js").Visit} visit */
  constructor(place, visit) {
    this.router = visit.router;
    /** @type {Map<string, string>} what differs from the form's defaults */
    this.given = visit.query;
    /** @type {any} */
    this.result = null;
    /** @type {any} what is drawn as pale lines: the run before, or one of the history */
    this.ghost = null;
    this.timer = 0;
    this.price = Number(visit.query.get("price") || PRICE);
    this.overTime = new OverTime(new Cursor());
    this.figures = h("div", { class: "figures", id: "figures" });
    this.said = h("div", { id: "said", role: "alert" });
    this.history = h("details", { id: "history" }, h("summary", {}, "Runs before"));
    place.className = "traffic";
    fill(place, this.form(), h("div", { class: "charts", "aria-live": "off" }, this.said, this.figures, this.overTime.element, this.history));
  }

  leave() {
    clearTimeout(this.timer);
    if (this.running) this.running.abort();
  }

  /** @param {string} run of an earlier time, or empty */
  async begin(run) {
    const beside = this.given.get("vs");
    if (beside) this.ghost = await seriesOf(beside).catch(() => null);
    if (run) await this.take(() => seriesOf(run));
    else await this.run();
    if (!this.ghost) this.ghost = this.result;
    await this.tellHistory();
  }

  form() {
    const field = (/** @type {any} */ [id, label, given, , , limits]) => h("label", { class: "field" }, h("span", {}, label), h("input", { type: "number", id, name: id, value: this.given.get(id) ?? given, min: limits.min, step: "any", on: { input: () => this.changed() } }));
    const object = (/** @type {"hpa" | "vpa"} */ id, /** @type {string} */ name, /** @type {string} */ text) => [
      h("label", { class: "check" }, h("input", { type: "checkbox", id, checked: this.given.get(id) !== "off", on: { change: () => this.changed() } }), name),
      h("textarea", { id: `${id}Yaml`, rows: 9, spellcheck: "false", "aria-label": `${name} Object (YAML)`, on: { input: () => this.changed() } }, this.given.get(`${id}Yaml`) ?? text)];
    const pattern = this.given.get("pattern") || "step";
    this.patterns = Object.entries(PATTERNS).map(([id, each]) => h("div", { class: "pattern", "data-pattern": id, hidden: id !== pattern }, each.fields.map(field)));
    return h("form", { id: "form", "aria-label": "What is simulated", on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); this.run("").then(() => this.keepGhost()); } } },
      h("h1", {}, "Traffic"),
      h("label", { class: "field" }, h("span", {}, "Traffic Pattern"), h("select", { id: "select-traffic-pattern", on: { change: () => this.changed() } }, Object.entries(PATTERNS).map(([id, each]) => h("option", { value: id, selected: id === pattern }, each.name)))),
      this.patterns, FIELDS.map(field), object("hpa", "HPA", HPA), object("vpa", "VPA", VPA),
      h("p", { class: "row acting" }, h("button", { type: "submit", id: "executeSimulation", class: "primary", title: "Compare what follows with this" }, "Execute simulation"), h("select", { id: "copy", "aria-label": "Copy this run", on: { change: (/** @type {any} */ event) => { if (event.target.value) this.copy(event.target.value); event.target.value = ""; } } },
          [["", "Copy as …"], ["TrafficRun", "TrafficRun"], ["Scenario", "Scenario"], ["curl", "curl"], ["link", "link to this"]].map(([value, name]) => h("option", { value }, name)))));
  }

  /** Anything in the form: the run is made again soon, the address says what was chosen. */
  changed() {
    const chosen = value("select-traffic-pattern");
    for (const each of this.patterns) each.hidden = each.dataset.pattern !== chosen;
    for (const id of /** @type {("hpa" | "vpa")[]} */ (["hpa", "vpa"])) byId(`${id}Yaml`).hidden = !isChecked(id);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), LATER_MS);
    /** @type {Record<string, string>} */
    const note = { pattern: chosen === "step" ? "" : chosen };
    for (const [id, , given] of [...FIELDS, ...Object.values(PATTERNS).flatMap((each) => each.fields)]) note[id] = value(id) === String(given) ? "" : value(id);
    for (const [id, text] of /** @type {[string, string][]} */ ([["hpa", HPA], ["vpa", VPA]])) {
      note[id] = isChecked(id) ? "" : "off";
      note[`${id}Yaml`] = value(`${id}Yaml`) === text ? "" : value(`${id}Yaml`);
    }
    this.router.note(note);
  }

  /** What the form asks for. */
  request() {
    const pattern = value("select-traffic-pattern");
    const of = (/** @type {any[]} */ fields) => Object.fromEntries(fields.map(([id, , , name, unit]) => [name, unit === SECOND ? Math.round(Number(value(id)) * unit) : name === "delta_v" ? Number(value(id)) : Math.round(Number(value(id)))]));
    const plugins = Object.fromEntries(Object.entries(TYPES).filter(([id]) => isChecked(id)).map(([id, type]) => [type, value(`${id}Yaml`)]));
    return { ...of(FIELDS), traffic_pattern: pattern, [PATTERNS[pattern].config]: of(PATTERNS[pattern].fields), plugins };
  }

  /** While somebody moves numbers nothing is kept; what is executed is. */
  async run(how = "&dryRun=All") {
    const request = this.request();
    await this.take((signal) => ask(`/run?view=charts${how}`, { method: "POST", body: request, signal }));
  }

  /** @param {(signal: AbortSignal) => Promise<any>} asked */
  async take(asked) {
    if (this.running) this.running.abort();
    const running = this.running = new AbortController();
    try {
      const result = await asked(running.signal);
      if (running.signal.aborted) return;
      this.result = result;
      this.said.className = "";
      fill(this.said);
      this.draw();
    } catch (error) {
      if (running.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      this.said.className = "said";
      fill(this.said, error.message);
    }
  }

  keepGhost() {
    this.ghost = this.result;
    this.tellHistory().catch((error) => toast(error.message, true));
    this.draw();
  }

  draw() {
    if (!this.result) return;
    const { result, ghost } = this, before = ghost && ghost !== result ? ghost : null;
    this.overTime.show(result.overTime, before ? before.overTime : null);
    const figure = (/** @type {string} */ name, /** @type {(summary: any) => string} */ of) => {
      const told = of(result.summary), was = before ? of(before.summary) : told;
      return h("div", { class: "figure" }, h("div", { class: "name" }, name), h("div", { class: "value" }, told), was !== told && h("div", { class: "note" }, `before: ${was}`));
    };
    const time = (/** @type {number | null | undefined} */ seconds) => (seconds === null || seconds === undefined ? "never" : `${number(Math.round(1000 * seconds))} ms`);
    const served = (/** @type {any} */ told, /** @type {number} */ seconds) => (told.succeeded ? time(seconds) : "nobody");
    fill(this.figures, figure("requests", (told) => number(told.requests)), figure("failed", (told) => number(told.failed)),
      figure("p50 of those served", (told) => served(told, told.responseP50S)), figure("p99 of those served", (told) => served(told, told.responseP99S)),
      figure("p99 of all, failures at their time-outs", (told) => time(told.allResponseP99S)), figure("minutes that missed the objective", (told) => `${number(told.sloMinutes)} of ${number(told.minutes)}`),
      figure("most replicas", (told) => number(told.replicasMost)), figure("replica time", (told) => asSeconds(3600 * told.replicaHours)),
      figure(`cost at ${this.price} a CPU hour`, (told) => (told.cpuHours * this.price).toFixed(4)));
  }

  /** Runs that were executed: look at one, or lay it under this one. */
  async tellHistory() {
    const { runs } = await ask("/runs?limit=20"), beside = this.given.get("vs");
    const under = (/** @type {string} */ id) => h("button", { type: "button", class: "key", "data-beside": id, "aria-pressed": String(beside === id), on: { click: () => this.layUnder(id) } }, "show beside");
    const again = (/** @type {string} */ id) => h("button", { type: "button", class: "key", on: { click: () => this.repeat(id) } }, "repeat");
    fill(this.history, h("summary", {}, "Runs before"), runs.length ? h("table", { class: "compact" }, h("thead", {}, h("tr", {}, ["run", "objective", "when", "failed", "most replicas", ""].map((name) => h("th", {}, name)))),
      h("tbody", {}, runs.map((/** @type {any} */ each) => h("tr", {}, h("td", {}, h("a", { href: `/ui/traffic/${each.id}` }, `run ${each.id}`)), h("td", {}, verdictOf(each)), h("td", {}, each.created || ""),
        h("td", {}, each.summary ? number(each.summary.failed) : ""), h("td", {}, each.summary ? number(each.summary.replicasMost) : ""), h("td", { class: "row tight" }, under(String(each.id)), again(String(each.id))))))) : h("p", { class: "more" }, "None yet: what is executed is kept."));
  }

  /** @param {string} id */
  async layUnder(id) {
    this.given.set("vs", id);
    this.router.note({ vs: id }, { push: true });
    this.ghost = await seriesOf(id);
    this.draw();
    await this.tellHistory();
  }

  /** @param {string} id */
  async repeat(id) {
    try {
      await ask(`/runs/${id}/repeat`, { method: "POST", body: {} });
      toast(`Run ${id} was repeated: the same again.`);
      await this.tellHistory();
    } catch (error) {
      toast(/** @type {Error} */ (error).message, true);
    }
  }

  /** @param {string} what is wanted */
  async copy(what) {
    let text = "";
    try {
      text = await this.written(what);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.said.className = "said";
      return void fill(this.said, error.message);
    }
    try {
      await navigator.clipboard.writeText(text);
      toast(`The ${what} is in the clipboard.`);
    } catch {
      fill(this.said, h("textarea", { rows: 12, readonly: true, id: "copied", "aria-label": `The ${what}` }, text));
    }
  }

  /** @param {string} what is wanted */
  async written(what) {
    if (what === "link") return location.href;
    if (what === "curl") return `curl -X POST ${location.origin}/run -H 'content-type: application/json' -d '${JSON.stringify(this.request()).replaceAll("'", "'\\''")}'`;
    if (what === "TrafficRun") return asYaml(this.result.run);
    const { scenario, leftOut } = await ask("/simulator/v1/convert", { method: "POST", body: this.result.run });
    return leftOut.map((/** @type {string} */ each) => `# ${each}\n`).join("") + asYaml(scenario);
  }
}

/** What the objective says of a run; of one that did not come to its end, the phase. @param {any} run */
const verdictOf = ({ phase, summary }) => (phase !== "Succeeded" || !summary ? phase || "" : !summary.minutes ? "no requests" : summary.sloMinutes ? `missed in ${number(summary.sloMinutes)} of ${number(summary.minutes)} min` : "kept");

/** @param {string} id */
const seriesOf = (id) => ask(`/runs/${encodeURIComponent(id)}/series?view=charts`);

/** @param {string} id */
const value = (id) => /** @type {any} */ (byId(id)).value;
/** @param {string} id */
const isChecked = (id) => /** @type {any} */ (byId(id)).checked;
