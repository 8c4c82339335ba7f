// As the system has it, or as the reader wants it; a page that may not store it forgets it.

import { byId } from "./dom.js";

const THEMES = ["auto", "light", "dark", "projector"];
const KEPT_AS = "kubescene-theme";

function storedTheme() {
  try {
    return localStorage.getItem(KEPT_AS);
  } catch {
    return null;
  }
}

function storeTheme(theme) {
  try {
    localStorage.setItem(KEPT_AS, theme);
  } catch {
    // Private windows and sandboxes refuse.
  }
}

function showTheme(theme) {
  document.documentElement.toggleAttribute("data-projector", theme === "projector");
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme === "projector" ? "light" : theme);
  byId("theme").textContent = `Theme: ${theme}`;
}

export function setUpTheme(changed) {
  let theme = THEMES.includes(storedTheme()) ? storedTheme() : "auto";
  showTheme(theme);
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    storeTheme(theme);
    showTheme(theme);
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
