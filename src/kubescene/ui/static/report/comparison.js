// The page of two runs: everything is written in the document already.

import { setUpTheme } from "../shared/theme.js";

setUpTheme(() => {});
