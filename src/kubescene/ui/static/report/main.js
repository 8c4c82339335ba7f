// The page comes to life: everything else is written in the document already.

import { Explorer } from "../shared/decisions.js";
import { byId } from "../shared/dom.js";
import { Drawing } from "../shared/drawing.js";
import { Heat } from "../shared/heat.js";
import { drawOverTime } from "../shared/over_time.js";
import { setUpTheme } from "../shared/theme.js";

const told = JSON.parse(byId("data").textContent);
let drawing = null;
setUpTheme(() => drawing && drawing.draw());
if (byId("drawing")) drawing = new Drawing(byId("drawing"), new Heat(told.heat || {}), told.steps || []);
if (byId("over-time")) drawOverTime(byId("over-time"), told.overTime);
if (byId("explorer")) {
  const explorer = new Explorer(byId("explorer"), told.decisions);
  for (const button of document.querySelectorAll("[data-decision]")) {
    button.addEventListener("click", () => {
      explorer.choose(Number(button.dataset.decision));
      byId("decisions").scrollIntoView();
      explorer.detail.focus({ preventScroll: true });
    });
  }
}
addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("details")) each.open = true; });
