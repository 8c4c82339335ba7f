// Short words about what was done, or why it was not.

import { byId, h } from "../shared/dom.js";

const STAYS_MS = 6000;

/** @param {string} text @param {boolean} [isBad] */
export function toast(text, isBad = false) {
  const told = h("div", { class: isBad ? "toast bad" : "toast" }, text);
  byId("toasts").append(told);
  setTimeout(() => told.remove(), isBad ? 3 * STAYS_MS : STAYS_MS);
}
