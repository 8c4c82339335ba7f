// Utilisation from dark to bright, even in lightness, and safe for people who see fewer colours.

import { clamp, h } from "./dom.js";

const STOPS = ["440154", "472c7a", "3b518b", "2c718e", "21908d", "27ad81", "5cc863", "aadc32", "fde725"];
const RAMP = Array.from({ length: 101 }, (_, place) => {
  const at = (place / 100) * (STOPS.length - 1);
  const low = Math.min(Math.floor(at), STOPS.length - 2);
  const part = (stop, byte) => parseInt(STOPS[stop].slice(2 * byte, 2 * byte + 2), 16);
  const mixed = [0, 1, 2].map((byte) => Math.round(part(low, byte) + (at - low) * (part(low + 1, byte) - part(low, byte))));
  return `rgb(${mixed.join(" ")})`;
});

export const ramp = (share) => RAMP[clamp(Math.round(share), 0, 100)];

// What a name of the style sheet is at the moment, as a colour that a canvas takes.
export function colour(name) {
  const probe = h("i", { hidden: true });
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export function colours() {
  const names = ["text", "soft", "faint", "line", "absent", "panel", "good-fill", "bad-fill", "wait-fill", "odd-fill", "track"];
  return Object.fromEntries(names.map((name) => [name, colour(name)]));
}
