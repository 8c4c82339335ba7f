// The pages of a server: a bar, one page at a time, and keys that work everywhere.

import { byId, h } from "../shared/dom.js";
import { setUpTheme } from "../shared/theme.js";
import { connection } from "./api.js";
import { Keys } from "./keys.js";
import { Router } from "./router.js";
import { setUpSigningIn } from "./signing_in.js";

const PAGES = [["cluster", "Cluster"], ["r", "Objects"], ["scenarios", "Scenarios"], ["traffic", "Traffic"], ["scheduler", "Scheduler"], ["what-if", "What if"]];

/** @type {import("./router.js").Route[]} */
const ROUTES = [
  { pattern: /^\/ui$/, load: () => import("./pages/start.js") },
  { pattern: /^\/ui\/cluster$/, load: () => import("./pages/cluster.js") },
  { pattern: /^\/ui\/r(?:\/([^/]+)\/([^/]+)\/([^/]+))?$/, load: () => import("./pages/objects.js") },
  { pattern: /^\/ui\/r\/([^/]+)\/([^/]+)\/([^/]+)\/([^/]+)\/([^/]+)$/, load: () => import("./pages/object.js") },
  { pattern: /^\/ui\/pod\/([^/]+)\/([^/]+)$/, load: () => import("./pages/pod.js") },
  { pattern: /^\/ui\/pod\/([^/]+)\/([^/]+)\/on\/([^/]+)$/, load: () => import("./pages/why_not.js") },
  { pattern: /^\/ui\/scenarios$/, load: () => import("./pages/scenarios.js") },
  { pattern: /^\/ui\/scenario\/([^/]+)$/, load: () => import("./pages/scenario.js") },
  { pattern: /^\/ui\/run\/((?:scenario|opened)-[0-9]+)$/, load: () => import("./pages/kept.js") },
  { pattern: /^\/ui\/compare$/, load: () => import("./pages/compare.js") },
  { pattern: /^\/ui\/sweeps(?:\/(sweep-[0-9]+))?$/, load: () => import("./pages/sweep.js") },
  { pattern: /^\/ui\/traffic(?:\/([0-9]+))?$/, load: () => import("./pages/traffic.js") },
  { pattern: /^\/ui\/what-if$/, load: () => import("./pages/what_if.js") },
  { pattern: /^\/ui\/scheduler$/, load: () => import("./pages/scheduler.js") },
  { pattern: /(.*)/, load: () => import("./pages/missing.js") },
];

function drawBar() {
  byId("bar").replaceChildren(h("nav", { "aria-label": "Pages" }, h("a", { href: "/ui", class: "home", title: "Start" }, h("img", { src: "/ui/static/app/icon.svg", alt: "", width: 18, height: 18 }), "Kubescene"),
    h("div", { class: "links" }, PAGES.map(([path, name]) => h("a", { href: `/ui/${path}`, "data-page": path }, name))),
    h("span", { id: "who" }), h("button", { type: "button", id: "keys", title: "Go to a page, a kind, a node or a pod (:)" }, "Go to …"),
    h("button", { type: "button", id: "theme", title: "Light, dark, large for a projector, or as the system" }, "Theme")));
}

/** @param {string} path */
function moved(path) {
  for (const link of document.querySelectorAll("nav [data-page]")) {
    const page = link.getAttribute("data-page") || "";
    const isHere = path === `/ui/${page}` || path.startsWith(`/ui/${page}/`) || (page === "scenarios" && /^\/ui\/(scenario|run|compare|sweeps)(\/|$)/.test(path)) || (page === "cluster" && path.startsWith("/ui/pod/"));
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function tellConnection() {
  const place = byId("connection");
  connection.addEventListener("lost", () => { place.hidden = false; place.textContent = "The server does not answer. What you see is the last that it said; this page goes on when it is back."; });
  connection.addEventListener("back", () => { place.hidden = true; });
}

drawBar();
setUpTheme(() => dispatchEvent(new Event("themed")));
tellConnection();
setUpSigningIn();
const router = new Router(byId("page"), ROUTES, moved);
new Keys(router);
router.follow();
