// Keys that work on every page, and the palette: type where you want to go.

import { byId, fill, h } from "../shared/dom.js";
import { ask } from "./api.js";
import { address } from "./router.js";

const PAGES = new Map([["c", "cluster"], ["r", "r"], ["s", "scenarios"], ["t", "traffic"], ["p", "scheduler"], ["w", "sweeps"], ["i", "what-if"], ["h", ""]]);
const MOST = 12;
const HELP = [[":", "go to a page, a kind, a node or a pod"], ["/", "filter"], ["?", "these keys"], ["Esc", "close, or leave a field"], ["g c", "cluster"], ["g r", "objects"],
  ["g s", "scenarios"], ["g t", "traffic"], ["g p", "scheduler"], ["g w", "sweeps"], ["g i", "what if"], ["g h", "start"], ["arrows", "from node to node, or step to step"], ["+  -", "larger and smaller tiles"]];

export class Keys {
  /** @param {import("./router.js").Router} router */
  constructor(router) {
    this.router = router;
    this.isGoing = false;
    /** @type {ReturnType<typeof kindsOf> | undefined} asked for when somebody types */
    this.kinds = undefined;
    /** @type {HTMLDialogElement | null} */
    this.dialog = null;
    document.addEventListener("keydown", (event) => this.key(event));
    byId("keys").addEventListener("click", () => this.palette());
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const element = /** @type {HTMLElement} */ (event.target);
    if (event.key === "Escape" && element.matches("input, textarea, select")) element.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || element.matches("input, textarea, select, [contenteditable]")) return;
    if (this.isGoing) {
      this.isGoing = false;
      const page = PAGES.get(event.key);
      if (page !== undefined) this.router.go(page ? `/ui/${page}` : "/ui");
      return;
    }
    const does = { g: () => { this.isGoing = true; }, ":": () => this.palette(), "?": () => this.help(), "/": () => { const find = document.querySelector("#page input[type=search]"); if (find) /** @type {any} */ (find).focus(); } };
    const act = /** @type {Record<string, () => void>} */ (does)[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** @param {Node[]} content @param {string} name */
  open(content, name) {
    if (this.dialog) this.dialog.remove();
    const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-label": name, on: { close: () => dialog.remove() } }, content));
    this.dialog = dialog;
    document.body.append(dialog);
    dialog.showModal();
  }

  help() {
    this.open([h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, HELP.map(([key, what]) => h("tr", {}, h("td", {}, h("kbd", {}, key)), h("td", {}, what))))),
      h("form", { method: "dialog" }, h("button", {}, "Close"))], "Keys");
  }

  palette() {
    const list = h("ul", { role: "listbox", id: "found" });
    const field = h("input", { type: "text", id: "go-to", placeholder: "a page, a kind (po, deploy, …), a node, a pod", "aria-label": "Go to", autocomplete: "off", on: {
      input: () => this.search(/** @type {any} */ (field).value, list), keydown: (/** @type {KeyboardEvent} */ event) => this.choose(event, list) } });
    this.open([field, list], "Go to");
    this.search("", list);
  }

  /** @param {string} text @param {HTMLElement} list */
  async search(text, list) {
    this.kinds ||= kindsOf();
    const kinds = await this.kinds;
    const word = text.trim().toLowerCase();
    const pages = [["Cluster", "/ui/cluster"], ["Scenarios", "/ui/scenarios"], ["Traffic", "/ui/traffic"], ["Scheduler", "/ui/scheduler"], ["Sweeps", "/ui/sweeps"], ["What if", "/ui/what-if"], ["Start", "/ui"]];
    const found = [...pages.filter(([name]) => name.toLowerCase().startsWith(word)),
      ...kinds.filter((each) => word && each.words.some((name) => name.startsWith(word))).sort((a, b) => a.words[0].length - b.words[0].length).map((each) => [`${each.kind} · ${each.group}/${each.version}`, each.href]), ...(word.length > 1 ? await namedLike(word) : [])];
    if (/** @type {any} */ (byId("go-to") || {}).value.trim().toLowerCase() !== word) return;
    fill(list, ...found.slice(0, MOST).map(([name, href], place) => h("li", { role: "option", "aria-selected": String(!place) }, h("a", { href, on: { click: () => this.dialog && this.dialog.close() } }, name))));
  }

  /** @param {KeyboardEvent} event @param {HTMLElement} list */
  choose(event, list) {
    const options = [...list.querySelectorAll("li")];
    const at = options.findIndex((each) => each.getAttribute("aria-selected") === "true");
    if (event.key === "Enter") {
      event.preventDefault();
      const link = options[at] && options[at].querySelector("a");
      if (link) link.click();
      return;
    }
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || !options.length) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(options.length - 1, at + by));
    options.forEach((each, place) => each.setAttribute("aria-selected", String(place === next)));
  }
}

/** Every kind that is served, with the words by which people call it. */
export async function kindsOf() {
  const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
  const both = await Promise.all(["/api", "/apis"].map((path) => ask(path, { accept: aggregated })));
  const found = [];
  for (const group of both.flatMap((each) => each.items)) {
    const name = group.metadata.name || "core";
    for (const version of group.versions.slice(0, 1)) {
      for (const each of version.resources || []) {
        if (!each.verbs.includes("list")) continue;
        found.push({ kind: each.responseKind.kind, group: name, version: version.version, plural: each.resource, isNamespaced: each.scope === "Namespaced",
          words: [each.resource, each.singularResource || "", ...(each.shortNames || [])].filter(Boolean), href: address(["r", name, version.version, each.resource]) });
      }
    }
  }
  return found;
}

/** Nodes and pods with such a name; the lists are asked for when somebody types. @param {string} word */
async function namedLike(word) {
  const table = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
  const [nodes, pods] = await Promise.all(["/api/v1/nodes?limit=2000", "/api/v1/pods?limit=2000"].map((path) => ask(path, { accept: table })));
  const like = (/** @type {any} */ each) => each.metadata.name.toLowerCase().includes(word);
  return [...nodes.items.filter(like).slice(0, 5).map((/** @type {any} */ each) => [`node ${each.metadata.name}`, address(["cluster"], [["sel", each.metadata.name]])]),
    ...pods.items.filter(like).slice(0, 8).map((/** @type {any} */ each) => [`pod ${each.metadata.namespace}/${each.metadata.name}`, address(["pod", each.metadata.namespace, each.metadata.name])])];
}
