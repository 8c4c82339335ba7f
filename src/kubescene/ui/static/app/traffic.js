// Requests, replicas and autoscalers: a form whose run is made again while it is changed, and its charts.

import { byId, fill, h, number } from "../shared/dom.js";
import { ask, ApiError } from "./api.js";
import { asSeconds, Cursor, TimeChart } from "./charts.js";
import { toast } from "./toasts.js";

const SECOND = 1e9;
const LATER_MS = 120;
const WINDOWS = 60;
const SHOWN_DOTS = 3000;
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

/** @param {HTMLElement} place @param {import("./router.js").Visit} visit */
export async function show(place, visit) {
  const page = new TrafficPage(place, visit);
  await page.begin(visit.params[0]);
  return { title: "Traffic", leave: () => page.leave() };
}

class TrafficPage {
  /** @param {HTMLElement} place @param {import("./router.js").Visit} visit */
  constructor(place, visit) {
    this.router = visit.router;
    /** @type {Map<string, string>} what differs from the form's defaults */
    this.given = visit.query;
    this.cursor = new Cursor();
    /** @type {any} */
    this.result = null;
    /** @type {any} */
    this.ghost = null;
    this.timer = 0;
    const chart = (/** @type {string} */ title, /** @type {string} */ unit, /** @type {any} */ more = {}) => new TimeChart({ title, unit, cursor: this.cursor, ...more });
    this.charts = { replicas: chart("Replicas", "replicas", { rightUnit: "requests/s" }), requests: chart("Requests", "requests", { rightUnit: "requests/s" }), responses: chart("Response time", "ms", { height: 190 }), cpu: chart("CPU", "%") };
    this.figures = h("div", { class: "figures", id: "figures" });
    this.said = h("div", { id: "said", role: "alert" });
    this.history = h("details", { id: "history" }, h("summary", {}, "Runs before"));
    place.className = "traffic";
    fill(place, this.form(), h("div", { class: "charts", "aria-live": "off" }, this.said, this.figures, Object.values(this.charts).map((each) => each.element), this.history));
  }

  leave() {
    clearTimeout(this.timer);
    if (this.running) this.running.abort();
  }

  /** @param {string} run of an earlier time, or empty */
  async begin(run) {
    if (run) {
      await this.take(() => ask(`/runs/${run}/series`));
      return;
    }
    await this.run();
    this.ghost = this.result;
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
      h("p", { class: "row" }, h("button", { type: "submit", id: "executeSimulation", class: "primary", title: "Compare what follows with this" }, "Execute simulation"), h("button", { type: "button", id: "copy-curl", on: { click: () => this.copy() } }, "Copy as curl")));
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
  async run(how = "?dryRun=All") {
    const request = this.request();
    await this.take((signal) => ask(`/run${how}`, { method: "POST", body: request, signal }));
  }

  /** @param {(signal: AbortSignal) => Promise<any>} asked */
  async take(asked) {
    if (this.running) this.running.abort();
    const running = this.running = new AbortController();
    try {
      const result = await asked(running.signal);
      if (running.signal.aborted) return;
      this.result = digested(result, Number(value("requestTimeoutSec")) * 1000);
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
    const { result, ghost } = this;
    const end = result.end;
    /** @param {string} name @param {string} tone @param {any} [more] */
    const both = (name, tone, more = {}) => [{ name: more.as || name, points: result[name], tone, ...more }, ...(ghost && ghost !== result && !more.isDots ? [{ name: more.as || name, points: ghost[name], tone: "odd", isGhost: true, ...more }] : [])];
    const rate = { name: "requests/s", points: result.rate, tone: "rate", isRight: true };
    this.charts.replicas.show([...both("desired", "wait", { isStep: true }), ...both("active", "good", { isStep: true }), rate], end);
    this.charts.requests.show([...both("inside", "info", { as: "being served" }), ...both("failed", "bad"), rate], end);
    this.charts.responses.show([{ name: "of a request", points: result.dots, tone: "info", isDots: true }, ...both("p50", "good"), ...both("p95", "wait"), ...both("p99", "bad")], end);
    this.charts.cpu.show(both("cpu", "info", { as: "CPU utilization" }), end);
    const figure = (/** @type {string} */ name, /** @type {string} */ told, /** @type {string} */ before) => h("div", { class: "figure" }, h("div", { class: "name" }, name), h("div", { class: "value" }, told), ghost && ghost !== result && before !== told && h("div", { class: "note" }, `before: ${before}`));
    const ms = (/** @type {number | null} */ value_) => (value_ === null ? "none" : `${number(Math.round(value_))} ms`);
    const of = (/** @type {(r: any) => string} */ told) => [told(result), ghost ? told(ghost) : ""];
    fill(this.figures, figure("requests", .../** @type {[string, string]} */ (of((r) => number(r.arrived)))), figure("failed", .../** @type {[string, string]} */ (of((r) => number(r.lost)))),
      figure("p50 of those served", .../** @type {[string, string]} */ (of((r) => ms(r.all50)))), figure("p99 of those served", .../** @type {[string, string]} */ (of((r) => ms(r.all99)))), figure("p99 of all, failures at their time-outs", .../** @type {[string, string]} */ (of((r) => ms(r.withFailures99)))), figure("most replicas", .../** @type {[string, string]} */ (of((r) => number(r.mostReplicas)))),
      figure("replica time", .../** @type {[string, string]} */ (of((r) => asSeconds(r.replicaSeconds)))));
  }

  async tellHistory() {
    const { runs } = await ask("/runs?limit=20");
    fill(this.history, h("summary", {}, "Runs before"), h("ul", { class: "plain" }, runs.map((/** @type {any} */ each) => h("li", {}, h("a", { href: `/ui/traffic/${each.id}` }, `run ${each.id}`), ` ${each.phase || ""}`))));
  }

  async copy() {
    const text = `curl -X POST ${location.origin}/run -H 'content-type: application/json' -d '${JSON.stringify(this.request()).replaceAll("'", "'\\''")}'`;
    try {
      await navigator.clipboard.writeText(text);
      toast("The command is in the clipboard.");
    } catch {
      toast(text);
    }
  }
}

/** @param {string} id */
const value = (id) => /** @type {any} */ (byId(id)).value;
/** @param {string} id */
const isChecked = (id) => /** @type {any} */ (byId(id)).checked;

/** Series as they are drawn, in seconds, of what the server answers. @param {any} told @param {number} timeout in milliseconds: so long somebody waited whose request failed */
export function digested(told, timeout) {
  const end = told.ran_for / SECOND;
  const stock = (/** @type {string} */ kind, /** @type {string} */ name) => told.tally_lines.filter((/** @type {any} */ each) => each.kind_stocked === kind && each.stock_name === name).map((/** @type {any} */ each) => [each.occurs_at / SECOND, each.tally]);
  const served = told.response_times.map((/** @type {any} */ each) => [each.completed_at / SECOND, each.response_time / 1e6]);
  const sorted = served.map((/** @type {number[]} */ [, time]) => time).sort((/** @type {number} */ a, /** @type {number} */ b) => a - b);
  const active = stock("Replica", "ReplicasActive"), failed = stock("Request", "RequestsFailed");
  const arrived = told.requests_per_second.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + each.requests, 0);
  const lost = failed.length ? failed[failed.length - 1][1] : 0;
  const every = Math.max(1, Math.ceil(served.length / SHOWN_DOTS));
  return {
    end, active, failed, arrived, desired: stock("Replica", "ReplicasDesired"), inside: stock("Request", "RequestsProcessing"),
    rate: told.requests_per_second.map((/** @type {any} */ each) => [each.second, each.requests]), cpu: told.cpu_utilizations.map((/** @type {any} */ each) => [each.calculated_at / SECOND, each.cpu_utilization]),
    dots: served.filter((/** @type {any} */ _, /** @type {number} */ at) => at % every === 0), ...windows(served, end),
    all50: nearest(sorted, 50), all99: nearest(sorted, 99), withFailures99: nearest([...sorted, ...Array(lost).fill(timeout)].sort((a, b) => a - b), 99), lost,
    mostReplicas: active.reduce((/** @type {number} */ most, /** @type {number[]} */ [, count]) => Math.max(most, count), 0), replicaSeconds: area(active, end),
  };
}

/** Percentiles of what was completed in each of so many windows. @param {[number, number][]} served @param {number} end */
function windows(served, end) {
  const size = end / WINDOWS;
  /** @type {number[][]} */
  const parts = Array.from({ length: WINDOWS }, () => []);
  for (const [at, time] of served) parts[Math.min(WINDOWS - 1, Math.floor(at / size))].push(time);
  /** @type {Record<string, [number, number][]>} */
  const found = { p50: [], p95: [], p99: [] };
  parts.forEach((times, place) => {
    times.sort((a, b) => a - b);
    for (const [name, percent] of /** @type {[string, number][]} */ ([["p50", 50], ["p95", 95], ["p99", 99]])) {
      const told = nearest(times, percent);
      if (told !== null) found[name].push([(place + 1) * size, told]);
    }
  });
  return found;
}

/** The percentile by nearest rank, null of nothing. @param {number[]} sorted @param {number} percent */
export const nearest = (sorted, percent) => (sorted.length ? sorted[Math.ceil((percent / 100) * sorted.length) - 1] : null);

/** What is under steps. @param {[number, number][]} points @param {number} end */
export function area(points, end) {
  let all = 0;
  points.forEach(([at, count], place) => { all += count * ((place + 1 < points.length ? points[place + 1][0] : end) - at); });
  return all;
}
