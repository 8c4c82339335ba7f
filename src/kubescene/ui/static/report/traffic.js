// A decision that somebody clicked at is opened where it is told.

import { byId } from "../shared/dom.js";
import { setUpTheme } from "../shared/theme.js";

setUpTheme(() => {});
function openChosen() {
  const chosen = byId(location.hash.slice(1));
  if (!chosen || !chosen.matches("details")) return;
  chosen.open = true;
  chosen.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", openChosen);
for (const link of document.querySelectorAll("svg a")) link.addEventListener("click", () => setTimeout(openChosen));
openChosen();
addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("details")) each.open = true; });
