// Which page is shown is what the address says, and so is what was chosen in it: Back works, links can be shared.

import { fill, h } from "../shared/dom.js";
import { ApiError } from "./api.js";

/**
 * @typedef {{title: string, leave?: () => void, changed?: (query: Map<string, string>) => void}} Shown
 * @typedef {{params: string[], query: Map<string, string>, router: Router}} Visit
 * @typedef {{pattern: RegExp, load: () => Promise<{show: (place: HTMLElement, visit: Visit) => Shown | Promise<Shown>}>}} Route
 */

/** @param {URLSearchParams} search */
const asMap = (search) => new Map([...search].filter(([, value]) => value !== ""));

/**
 * An address below `/ui`, its parts escaped.
 * @param {string[]} parts @param {Iterable<[string, string]>} [query]
 */
export function address(parts, query = []) {
  const search = new URLSearchParams([...query].filter(([, value]) => value !== "")).toString();
  return `/ui/${parts.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export class Router {
  /** @param {HTMLElement} place @param {Route[]} routes @param {(path: string, title: string) => void} moved */
  constructor(place, routes, moved) {
    this.place = place;
    this.routes = routes;
    this.moved = moved;
    /** @type {Shown | null} */
    this.shown = null;
    this.path = "";
    this.visits = 0;
    addEventListener("popstate", () => this.follow());
    document.addEventListener("click", (event) => this.clicked(event));
  }

  get query() { return asMap(new URLSearchParams(location.search)); }

  /** Go to another page. @param {string} to */
  go(to) {
    history.pushState(null, "", to);
    return this.follow();
  }

  /**
   * Note what is chosen on this page; what is empty is left out.
   * @param {Record<string, string>} chosen @param {{push?: boolean}} [how] a step for Back, or not
   */
  note(chosen, { push = false } = {}) {
    const query = this.query;
    for (const [name, value] of Object.entries(chosen)) query.set(name, value);
    const search = new URLSearchParams([...query].filter(([, value]) => value !== "")).toString();
    const to = location.pathname + (search ? `?${search}` : "");
    if (to === location.pathname + location.search) return;
    if (push) history.pushState(null, "", to);
    else history.replaceState(null, "", to);
  }

  /** Links of our own pages are followed without loading. @param {MouseEvent} event */
  clicked(event) {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = /** @type {HTMLElement} */ (event.target).closest("a");
    if (!link || link.origin !== location.origin || !link.pathname.startsWith("/ui") || link.target || link.hash) return;
    event.preventDefault();
    this.go(link.pathname + link.search);
  }

  async follow() {
    const path = location.pathname.replace(/\/+$/, "") || "/ui";
    if (path === this.path && this.shown && this.shown.changed) {
      this.shown.changed(this.query);
      return;
    }
    const visit = ++this.visits;
    this.path = path;
    const [route, found] = this.find(path);
    const page = await route.load();
    if (visit !== this.visits) return;
    if (this.shown && this.shown.leave) this.shown.leave();
    this.shown = null;
    this.place.replaceChildren();
    this.place.className = "";
    // At once, as whoever waits for the rest of a page may have begun with what is there.
    this.place.focus({ preventScroll: true });
    scrollTo(0, 0);
    const shown = await this.tried(page, { params: found.slice(1).map((part) => decodeURIComponent(part || "")), query: this.query, router: this });
    if (visit !== this.visits) {
      if (shown.leave) shown.leave();
      return;
    }
    this.shown = shown;
    document.title = `${shown.title} · Kubescene`;
    this.moved(path, shown.title);
  }

  /** The page, or why it cannot be shown. @param {Awaited<ReturnType<Route["load"]>>} page @param {Visit} visit @returns {Promise<Shown>} */
  async tried(page, visit) {
    try {
      return await page.show(this.place, visit);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      fill(this.place, h("h1", {}, "This cannot be shown"), h("p", { class: "said", role: "alert" }, error.message), h("p", {}, h("a", { href: "/ui" }, "Start")));
      return { title: "This cannot be shown" };
    }
  }

  /** @param {string} path @returns {[Route, RegExpMatchArray]} */
  find(path) {
    for (const route of this.routes) {
      const found = path.match(route.pattern);
      if (found) return [route, found];
    }
    const last = this.routes[this.routes.length - 1];
    return [last, /** @type {RegExpMatchArray} */ ([path])];
  }
}
