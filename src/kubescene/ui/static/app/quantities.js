// Amounts of Kubernetes as numbers, and as people write them.

const SUFFIXES = new Map(Object.entries({ n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 }));

/** @param {unknown} text a quantity; what is none counts as nothing */
export function amount(text) {
  const found = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/.exec(String(text ?? ""));
  if (!found) return 0;
  const scale = found[2] ? SUFFIXES.get(found[2]) : 1;
  return scale === undefined ? 0 : Number(found[1]) * scale;
}

/** @param {number} cores */
export const asCpu = (cores) => (cores >= 10 || Number.isInteger(cores) ? `${Math.round(cores * 10) / 10}` : cores >= 1 ? `${Math.round(cores * 100) / 100}` : `${Math.round(cores * 1000)}m`);

/** @param {number} bytes */
export function asBytes(bytes) {
  for (const [unit, size] of /** @type {[string, number][]} */ ([["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]])) {
    if (bytes >= size) return `${Math.round((bytes / size) * 10) / 10}${unit}`;
  }
  return `${bytes}`;
}
