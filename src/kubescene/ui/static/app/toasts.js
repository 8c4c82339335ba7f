// Short words about what was done, or why it was not; and a question before what cannot be undone.

import { byId, h } from "../shared/dom.js";

const STAYS_MS = 6000;

/** @param {string} text @param {boolean} [isBad] */
export function toast(text, isBad = false) {
  const told = h("div", { class: isBad ? "toast bad" : "toast" }, text);
  byId("toasts").append(told);
  setTimeout(() => told.remove(), isBad ? 3 * STAYS_MS : STAYS_MS);
}

/** Whether somebody means it; Esc and whatever else closes the question is no. @param {string} question @param {string} does the word on the button @returns {Promise<boolean>} */
export function isMeant(question, does) {
  return new Promise((resolve) => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    const closed = () => {
      box.remove();
      if (before) before.focus();
      resolve(box.returnValue === "yes");
    };
    const box = /** @type {HTMLDialogElement} */ (h("dialog", { id: "is-meant", "aria-label": question, on: { close: closed } },
      h("form", { method: "dialog" }, h("p", {}, question), h("p", { class: "row" }, h("button", { value: "no", autofocus: true }, "Keep"), h("button", { value: "yes", class: "primary", id: "meant" }, does)))));
    document.body.append(box);
    box.showModal();
  });
}
