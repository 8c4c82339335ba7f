// Where tiles stand: groups one below the other, each a grid of squares of one size.

export const GAP = 2;
export const HEAD = 24;
const LEAST = 6, MOST = 280;
const ZOOM = 1.2;

/**
 * @typedef {{name: string, count: number}} Group
 * @typedef {{name: string, first: number, count: number, top: number, height: number}} Band
 * @typedef {{size: number, columns: number, bands: Band[], height: number, head: number}} Grid
 */

/**
 * The largest tiles with which all groups fit into the room; the smallest if none do: then one scrolls.
 * @param {Group[]} groups @param {number} width @param {number} height @param {number} [zoom] steps towards larger tiles
 * @returns {Grid}
 */
export function gridOf(groups, width, height, zoom = 0) {
  let low = LEAST, high = MOST;
  while (low < high) {
    const size = Math.ceil((low + high) / 2);
    if (placed(groups, width, size).height <= height) low = size;
    else high = size - 1;
  }
  return placed(groups, width, Math.max(LEAST, Math.min(MOST, Math.round(low * ZOOM ** zoom))));
}

/** @param {Group[]} groups @param {number} width @param {number} size @returns {Grid} */
function placed(groups, width, size) {
  const step = size + GAP;
  const columns = Math.max(1, Math.floor((width + GAP) / step));
  const head = groups.length > 1 || (groups[0] && groups[0].name) ? HEAD : 0;
  let top = 0, first = 0;
  const bands = groups.map(({ name, count }) => {
    const band = { name, first, count, top, height: Math.ceil(count / columns) * step };
    first += count;
    top += head + band.height + (head ? 8 : 0);
    return band;
  });
  return { size, columns, bands, height: top, head };
}

/** The place of a tile. @param {Grid} grid @param {number} index @returns {{x: number, y: number}} */
export function placeOf(grid, index) {
  const band = bandOf(grid, index);
  const at = index - band.first;
  const step = grid.size + GAP;
  return { x: (at % grid.columns) * step, y: band.top + grid.head + Math.floor(at / grid.columns) * step };
}

/** @param {Grid} grid @param {number} index @returns {Band} */
function bandOf(grid, index) {
  return /** @type {Band} */ (grid.bands.find((band) => index < band.first + band.count) || grid.bands[grid.bands.length - 1]);
}

/** The tile at a point, -1 for none. @param {Grid} grid @param {number} x @param {number} y */
export function tileAt(grid, x, y) {
  const step = grid.size + GAP;
  const band = grid.bands.find((each) => y >= each.top + grid.head && y < each.top + grid.head + each.height);
  const column = Math.floor(x / step);
  if (!band || x < 0 || column >= grid.columns || x - column * step > grid.size) return -1;
  const down = y - band.top - grid.head;
  if (down % step > grid.size) return -1;
  const at = Math.floor(down / step) * grid.columns + column;
  return at < band.count ? band.first + at : -1;
}

/** The first and the last tile that a stretch of the page can show. @param {Grid} grid @param {number} from @param {number} to */
export function between(grid, from, to) {
  const step = grid.size + GAP;
  let first = Infinity, last = -1;
  for (const band of grid.bands) {
    const top = band.top + grid.head;
    if (top + band.height < from || band.top > to || !band.count) continue;
    const low = Math.max(0, Math.floor((from - top) / step)) * grid.columns;
    const high = Math.min(band.count, (Math.floor((to - top) / step) + 1) * grid.columns);
    first = Math.min(first, band.first + Math.min(low, band.count - 1));
    last = Math.max(last, band.first + high - 1);
  }
  return { first: Number.isFinite(first) ? first : 0, last };
}

/**
 * The tile next to another, as arrow keys go. @param {Grid} grid @param {number} index @param {string} key @param {number} total
 */
export function neighbour(grid, index, key, total) {
  const moves = new Map(Object.entries({ ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.columns, ArrowDown: grid.columns, Home: -total, End: total }));
  const by = moves.get(key);
  return by === undefined ? index : Math.max(0, Math.min(total - 1, index + by));
}
