// Who is looking, where the server asks for it: a token that stays in this tab, and never in the address.

import { byId, fill, h } from "../shared/dom.js";
import { ask, identity } from "./api.js";

const KEPT_AS = "kubescene-token";
const IN_ADDRESS = /^#token=(.+)$/;
const IN_KUBECONFIG = /\btoken:\s*["']?([^\s"']+)/;
const WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/** @type {Promise<void> | null} while somebody is asked, so that many requests ask once */
let asked = null;

/** Begin with the token that the address brings, which is taken out of it, or with the one of before. */
export function setUpSigningIn() {
  const brought = IN_ADDRESS.exec(location.hash);
  if (brought) {
    history.replaceState(null, "", location.pathname + location.search);
    keep(decodeURIComponent(brought[1]));
  } else identity.token = sessionStorage.getItem(KEPT_AS) || "";
  identity.renew = (refused) => (identity.token === refused ? (asked ||= dialog(refused).finally(() => { asked = null; })) : Promise.resolve());
  if (identity.token) tellWho();
}

/** @param {string} token */
function keep(token) {
  identity.token = token;
  sessionStorage.setItem(KEPT_AS, token);
}

/** A token as such, or the one of a kubeconfig. @param {string} text */
const tokenIn = (text) => (IN_KUBECONFIG.exec(text) || ["", text.trim()])[1];

/** Ask until there is a token; whether it is known, the requests that wait will see. @param {string} refused @returns {Promise<void>} */
function dialog(refused) {
  return new Promise((resolve) => {
    const field = h("input", { type: "password", id: "token", "aria-label": "Token", placeholder: "a token, or a kubeconfig that has one", autocomplete: "off", required: true });
    const open = async (/** @type {any} */ event) => { const [file] = event.target.files; if (file) take(await file.text()); };
    const take = (/** @type {string} */ text) => {
      if (!tokenIn(text)) return;
      keep(tokenIn(text));
      box.remove();
      tellWho();
      resolve();
    };
    const box = /** @type {HTMLDialogElement} */ (h("dialog", { id: "sign-in", "aria-label": "Sign in", on: { close: () => box.isConnected && box.showModal() } },
      h("h2", {}, "Who are you?"), refused && h("p", { class: "said", role: "alert" }, "This server does not know that token."),
      h("p", {}, "It shows its world only to those whom it knows. It said where the kubeconfig of its administrator is when it started; others get one by ", h("code", {}, "kubescene kubeconfig --as NAME"), "."),
      h("form", { on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); take(/** @type {any} */ (field).value); } } }, h("p", {}, field),
        h("p", { class: "row" }, h("button", { type: "submit", class: "primary", id: "sign" }, "Sign in"), h("label", { class: "row" }, "or open a kubeconfig", h("input", { type: "file", id: "kubeconfig", on: { change: open } })))),
      h("p", { class: "more" }, "The token stays in this tab until it is closed.")));
    document.body.append(box);
    box.showModal();
  });
}

/** Say who is signed in, and offer to leave. */
async function tellWho() {
  const token = identity.token, { status } = await ask(WHO, { method: "POST", body: {} });
  if (token !== identity.token) return;
  const leave = () => {
    sessionStorage.removeItem(KEPT_AS);
    location.assign("/ui");
  };
  fill(byId("who"), h("button", { type: "button", id: "sign-out", title: "Forget the token of this tab", on: { click: leave } }, `${status.userInfo.username}: sign out`));
}

/** A link into another tab brings no token along: where one is needed, what it leads to is saved. @param {Event} event @param {string} name */
export async function saveInstead(event, name) {
  if (!identity.token) return;
  event.preventDefault();
  const path = /** @type {HTMLElement} */ (event.currentTarget).getAttribute("href") || "";
  const address = URL.createObjectURL(new Blob([await ask(path)], { type: "text/html" }));
  h("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}
