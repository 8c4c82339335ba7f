// Lists and watches nodes and pods, and tells the page what has changed, at most every few milliseconds.

import { ask, ApiError, identity, linesOf } from "./api.js";
import { nodeRow, podColumns, podRow } from "./reduced.js";

const BATCH_MS = 30;
const AGAIN_MS = 500;
/** What is equal is told once in a page, so a few large ones are less than many small ones. */
const PAGE = 50_000;
const KINDS = [
  { kind: "nodes", path: "/api/v1/nodes", accept: "application/json", row: nodeRow, key: (/** @type {any} */ m) => m.name, all: (/** @type {any} */ list) => ({ rows: list.items.map(nodeRow) }) },
  { kind: "pods", path: "/api/v1/pods", accept: "application/json;as=Columns;g=simulation.kube-scheduler-simulator.x-k8s.io;v=v1alpha1", row: podRow, key: (/** @type {any} */ m) => `${m.namespace}/${m.name}`,
    all: (/** @type {any} */ list) => ({ columns: podColumns(list) }) },
];

/** @type {{nodes: Map<string, any>, pods: Map<string, any>}} a row, or null for one that is gone */
let pending = { nodes: new Map(), pods: new Map() };
let timer = 0;

/** @param {"nodes" | "pods"} kind @param {string} key @param {any} row */
function changed(kind, key, row) {
  pending[kind].set(key, row);
  if (!timer) timer = setTimeout(flush, BATCH_MS);
}

function flush() {
  timer = 0;
  postMessage({ type: "changes", nodes: [...pending.nodes], pods: [...pending.pods] });
  pending = { nodes: new Map(), pods: new Map() };
}

/** Tell all objects of a kind, page by page: what has come can be painted. @param {typeof KINDS[0]} of @returns {Promise<string>} the revision that they are of */
async function list(of) {
  for (let isFirst = true, next = "", revision = ""; ; isFirst = false) {
    const found = await ask(`${of.path}?limit=${PAGE}${next && `&continue=${encodeURIComponent(next)}`}`, { accept: of.accept });
    next = found.metadata.continue || "";
    revision ||= found.metadata.resourceVersion;
    postMessage({ type: "all", kind: of.kind, isFirst, isLast: !next, ...of.all(found) });
    if (!next) return revision;
  }
}

/** Follow a kind for good: what was missed while the server was away is listed again. @param {typeof KINDS[0]} of @param {string} revision */
async function follow(of, revision) {
  const kind = /** @type {"nodes" | "pods"} */ (of.kind);
  for (;;) {
    try {
      for await (const event of linesOf(`${of.path}?watch=true&allowWatchBookmarks=true&resourceVersion=${revision}`, new AbortController().signal)) {
        if (event.type === "ERROR") throw new ApiError(event.object.code, event.object.message);
        const { metadata } = event.object;
        revision = metadata.resourceVersion;
        if (event.type !== "BOOKMARK") changed(kind, of.key(metadata), event.type === "DELETED" ? null : of.row(event.object));
      }
    } catch {
      revision = await again(of);
    }
  }
}

/** @param {typeof KINDS[0]} of */
async function again(of) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    try {
      return await list(of);
    } catch {
      // Not back yet.
    }
  }
}

/** The page knows who is looking: it says so at the beginning, and when a token is refused. @type {(() => void)[]} */
const waiting = [];
identity.renew = (token) => new Promise((resolve) => {
  waiting.push(resolve);
  if (waiting.length === 1) postMessage({ type: "unknown", token });
});

let hasBegun = false;
onmessage = ({ data }) => {
  identity.token = data.token;
  waiting.splice(0).forEach((resolve) => resolve());
  if (hasBegun) return;
  hasBegun = true;
  for (const of of KINDS) list(of).catch(() => again(of)).then((revision) => follow(of, revision));
};
