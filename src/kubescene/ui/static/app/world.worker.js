// Lists and watches nodes and pods, and tells the page what has changed, at most every few milliseconds.

import { ApiError, ask, linesOf } from "./api.js";
import { nodeRow, podRow } from "./reduced.js";

const BATCH_MS = 30;
const PAGE = 5000;
const AGAIN_MS = 500;
const KINDS = [
  { kind: "nodes", path: "/api/v1/nodes", row: nodeRow, key: (/** @type {any} */ m) => m.name },
  { kind: "pods", path: "/api/v1/pods", row: podRow, key: (/** @type {any} */ m) => `${m.namespace}/${m.name}` },
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

/** All objects of a kind, and the revision that they are of. @param {typeof KINDS[0]} of */
async function listed(of) {
  const rows = [];
  let next = "", revision = "";
  do {
    const page = await ask(`${of.path}?limit=${PAGE}${next ? `&continue=${encodeURIComponent(next)}` : ""}`);
    for (const each of page.items) rows.push(of.row(each));
    revision = page.metadata.resourceVersion;
    next = page.metadata.continue || "";
  } while (next);
  return { rows, revision };
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
      const { rows, revision } = await listed(of);
      postMessage({ type: "all", kind: of.kind, rows });
      return revision;
    } catch {
      // Not back yet.
    }
  }
}

async function run() {
  for (const of of KINDS) {
    let revision;
    try {
      const found = await listed(of);
      postMessage({ type: "all", kind: of.kind, rows: found.rows });
      revision = found.revision;
    } catch {
      revision = await again(of);
    }
    follow(of, revision);
  }
}

run();
