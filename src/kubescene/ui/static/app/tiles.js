// Nodes as tiles on one canvas: what is free is seen first, then what pods are and how they are.

import { colours, ramp } from "../shared/colours.js";
import { between, GAP, gridOf, neighbour, placeOf, tileAt } from "./layout.js";
import { takesRoom } from "./reduced.js";
import { fullness, mark } from "./world.js";

/** @typedef {import("./world.js").Node} Node @typedef {import("./reduced.js").PodRow} PodRow */

const HEAT_BELOW = 12;
const BARS_FROM = 24;
const NAMES_FROM = 66;
const POD_NAMES_FROM = 150;
const HEADER = 18;
const FADED = 0.16;
const SLOW_MS = 40;
const SLOW_FRAMES = 12;
const REST_MS = 200;
/** Colours of values of a label, by how many pods have them; the rest is grey. */
export const WHEEL = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b3a100"];

/**
 * @typedef {{names: Map<string, string>, of: (pod: PodRow) => string}} PodColours
 */

export class Tiles {
  /** @param {HTMLElement} place @param {{chosen: (name: string) => void, pointed: (node: Node | null, event: MouseEvent | null) => void}} heard */
  constructor(place, heard) {
    this.place = place;
    this.heard = heard;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "tiles";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", "Nodes as tiles. Arrow keys move from node to node, Enter chooses one; what is under the cursor is told below.");
    this.canvas.setAttribute("aria-describedby", "tile-told");
    this.spacer = document.createElement("div");
    place.append(this.canvas, this.spacer);
    /** @type {Node[]} */
    this.order = [];
    /** @type {Map<string, number>} */
    this.index = new Map();
    /** @type {import("./layout.js").Group[]} */
    this.groups = [];
    this.zoom = 0;
    this.selected = "";
    this.focused = -1;
    /** @type {(node: Node) => boolean} */
    this.keeps = () => true;
    /** @type {PodColours | null} null colours tiles by how full they are */
    this.podColours = null;
    /** @type {Set<number>} */
    this.dirty = new Set();
    this.isWholeDirty = true;
    this.isAsked = false;
    this.ink = colours();
    this.frames = { drawn: 0, ms: 0, slow: 0 };
    /** Whether whole pictures take too long here: then there are five a second, and in between only what is coarse. */
    this.isCoarse = false;
    this.isMoving = false;
    this.isZooming = false;
    /** @type {Node | null} */
    this.anchor = null;
    this.rest = 0;
    this.listen();
  }

  listen() {
    this.watcher = new ResizeObserver(() => this.arrange());
    this.watcher.observe(this.place);
    this.place.addEventListener("scroll", () => this.moved());
    this.canvas.addEventListener("mousemove", (event) => this.heard.pointed(this.at(event), event));
    this.canvas.addEventListener("mouseleave", () => this.heard.pointed(null, null));
    let dragged = 0;
    this.canvas.addEventListener("pointerdown", () => { dragged = 0; });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!(event.buttons & 1)) return;
      dragged += Math.abs(event.movementX) + Math.abs(event.movementY);
      this.place.scrollTop -= event.movementY;
    });
    this.canvas.addEventListener("click", (event) => {
      if (dragged > 6) return;
      const node = this.at(event);
      if (node) this.focused = /** @type {number} */ (this.index.get(node.key));
      this.heard.chosen(node ? node.key : "");
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("wheel", (event) => {
      if (event.shiftKey || (this.zoom <= 0 && (event.deltaY > 0 || this.place.scrollTop > 0))) return;
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1 : -1, event);
    }, { passive: false });
  }

  leave() {
    clearTimeout(this.rest);
    if (this.watcher) this.watcher.disconnect();
  }

  /** Show these nodes in these groups. @param {Node[]} order @param {import("./layout.js").Group[]} groups */
  show(order, groups) {
    this.order = order;
    this.groups = groups;
    this.index = new Map(order.map((node, place) => [node.key, place]));
    this.arrange();
  }

  /** Larger or smaller tiles; what is under the pointer stays in the window. @param {number} steps @param {MouseEvent} [event] */
  zoomBy(steps, event) {
    // Tiles that grow are arranged anew: whoever zooms on means the node that was there at first.
    if (event && !this.isZooming) this.anchor = this.at(event) || this.at({ clientX: event.clientX - GAP - 1, clientY: event.clientY - GAP - 1 });
    this.isZooming = Boolean(event);
    const node = event && this.anchor, before = event ? event.clientY - this.canvas.getBoundingClientRect().top : 0;
    this.zoom = Math.max(0, Math.min(18, this.zoom + steps));
    this.isMoving = true;
    this.arrange();
    const place = node ? this.index.get(node.key) : undefined;
    if (place !== undefined && this.grid) this.place.scrollTop = placeOf(this.grid, place).y + this.grid.size / 2 - before;
    this.moved();
  }

  /** While somebody moves, pictures may be coarse; the whole one comes when they rest. */
  moved() {
    this.isMoving = this.isCoarse;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => { this.isMoving = this.isZooming = false; this.redraw(); }, REST_MS);
    this.redraw();
  }

  arrange() {
    const { clientWidth: width, clientHeight: height } = this.place;
    if (!width || !height) return;
    this.grid = gridOf(this.groups, width - 2, height - 2, this.zoom);
    this.spacer.style.height = `${Math.max(0, this.grid.height - height)}px`;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    this.redraw();
  }

  /** @param {Iterable<string>} names nodes that have changed */
  touch(names) {
    for (const name of names) {
      const place = this.index.get(name);
      if (place !== undefined) this.dirty.add(place);
    }
    this.ask();
  }

  redraw() {
    this.isWholeDirty = true;
    this.ask();
  }

  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    const draw = () => requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
    if (this.isCoarse && !this.isMoving) setTimeout(draw, REST_MS);
    else draw();
  }

  /** The node at a point of the window. @param {{clientX: number, clientY: number}} event */
  at(event) {
    if (!this.grid) return null;
    const box = this.canvas.getBoundingClientRect();
    const found = tileAt(this.grid, event.clientX - box.left, event.clientY - box.top + this.place.scrollTop);
    return found < 0 ? null : this.order[found];
  }

  /** Where a node is in the window, for whoever wants to point at it. @param {string} name */
  middle(name) {
    const place = this.index.get(name);
    if (place === undefined || !this.grid) return null;
    const { x, y } = placeOf(this.grid, place);
    const box = this.canvas.getBoundingClientRect();
    return { x: box.left + x + this.grid.size / 2, y: box.top + y - this.place.scrollTop + this.grid.size / 2 };
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!this.grid || !this.order.length) return;
    if (event.key === "+" || event.key === "-") {
      this.zoomBy(event.key === "+" ? 1 : -1);
      return;
    }
    if (event.key === "Enter" && this.focused >= 0) {
      this.heard.chosen(this.order[this.focused].key);
      return;
    }
    const next = this.focused < 0 && event.key.startsWith("Arrow") ? 0 : neighbour(this.grid, this.focused, event.key, this.order.length);
    if (next === this.focused) return;
    event.preventDefault();
    this.focused = next;
    this.bringIntoView(next);
    this.heard.pointed(this.order[next], null);
    this.redraw();
  }

  /** @param {number} index */
  bringIntoView(index) {
    if (!this.grid) return;
    const { y } = placeOf(this.grid, index);
    const { scrollTop, clientHeight } = this.place;
    if (y < scrollTop) this.place.scrollTop = y - 4;
    else if (y + this.grid.size > scrollTop + clientHeight) this.place.scrollTop = y + this.grid.size - clientHeight + 4;
  }

  draw() {
    if (!this.grid) return;
    const began = performance.now();
    const ratio = window.devicePixelRatio || 1;
    const paint = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const top = this.place.scrollTop, height = this.place.clientHeight;
    const { first, last } = between(this.grid, top, top + height);
    paint.setTransform(ratio, 0, 0, ratio, 0, -top * ratio);
    paint.textBaseline = "middle";
    if (this.isWholeDirty) {
      this.ink = colours();
      paint.clearRect(0, top, this.place.clientWidth, height);
      this.drawHeads(paint);
      for (let place = first; place <= last; place++) this.drawTile(paint, place);
    } else {
      for (const place of this.dirty) {
        if (place < first || place > last) continue;
        const { x, y } = placeOf(this.grid, place);
        paint.clearRect(x - 1, y - 1, this.grid.size + 2, this.grid.size + 2);
        this.drawTile(paint, place);
      }
    }
    this.dirty.clear();
    this.isWholeDirty = false;
    this.learn(performance.now() - began);
  }

  /** Where a dozen pictures in a row took too long, the page asks less of this machine. @param {number} ms that a picture took */
  learn(ms) {
    this.frames.drawn++;
    this.frames.ms += ms;
    if (this.isMoving && this.isCoarse) return;
    this.frames.slow = ms > SLOW_MS ? this.frames.slow + 1 : 0;
    if (this.frames.slow < SLOW_FRAMES || this.isCoarse) return;
    this.isCoarse = true;
    this.canvas.dispatchEvent(new Event("coarse"));
  }

  /** @param {CanvasRenderingContext2D} paint */
  drawHeads(paint) {
    const { grid } = this;
    if (!grid || !grid.head) return;
    paint.font = "600 13px system-ui, sans-serif";
    for (const band of grid.bands) {
      paint.fillStyle = this.ink.soft;
      paint.fillText(`${band.name || "none"}  ·  ${band.count}`, 0, band.top + grid.head / 2);
    }
  }

  /** @param {CanvasRenderingContext2D} paint @param {number} place */
  drawTile(paint, place) {
    const grid = /** @type {import("./layout.js").Grid} */ (this.grid);
    const node = this.order[place], { size } = grid, { x, y } = placeOf(grid, place);
    paint.save();
    if (!this.keeps(node)) paint.globalAlpha = FADED;
    const isSmall = size < HEAT_BELOW || (this.isMoving && this.isCoarse), isHeat = isSmall || !this.podColours;
    const full = fullness(node);
    paint.fillStyle = isHeat && (isSmall || size < BARS_FROM) ? (full > 100 ? this.ink["bad-fill"] : ramp(full)) : this.ink.track;
    paint.fillRect(x, y, size, size);
    if (!isSmall && !(isHeat && size < BARS_FROM)) this.drawInside(paint, node, x, y, size, full);
    this.drawMark(paint, node, x, y, size);
    paint.restore();
    if (node.key === this.selected || place === this.focused) {
      paint.lineWidth = 2;
      paint.strokeStyle = node.key === this.selected ? this.ink.text : this.ink.soft;
      paint.strokeRect(x, y, size, size);
    }
  }

  /** @param {CanvasRenderingContext2D} paint @param {Node} node @param {number} x @param {number} y @param {number} size @param {number} full */
  drawInside(paint, node, x, y, size, full) {
    const named = size >= NAMES_FROM, barred = size >= BARS_FROM;
    const head = named ? HEADER : 0, edge = barred ? 4 : 0;
    const body = { x: x + edge + (barred ? 1 : 0), y: y + head, width: size - edge - (barred ? 2 : 0), height: size - head - edge - (barred ? 1 : 0) };
    if (named) {
      paint.font = "600 11px system-ui, sans-serif";
      paint.fillStyle = this.ink.text;
      const told = `${Math.round(full)}%`;
      const room = size - 8 - paint.measureText(told).width - 6;
      paint.fillText(shortened(paint, node.name, room), x + 4, y + HEADER / 2 + 1);
      paint.textAlign = "right";
      paint.fillStyle = full > 100 ? this.ink["bad-fill"] : this.ink.soft;
      paint.fillText(told, x + size - 4, y + HEADER / 2 + 1);
      paint.textAlign = "left";
    }
    if (barred) {
      const cpu = Math.min(1, node.cpu ? node.usedCpu / node.cpu : 0), memory = Math.min(1, node.memory ? node.usedMemory / node.memory : 0);
      paint.fillStyle = this.ink.line;
      paint.fillRect(x, body.y, edge, body.height);
      paint.fillRect(x, y + size - edge, size, edge);
      paint.fillStyle = this.ink.soft;
      paint.fillRect(x, body.y + body.height * (1 - cpu), edge, body.height * cpu);
      paint.fillRect(x, y + size - edge, size * memory, edge);
    }
    this.drawPods(paint, node, body, size);
  }

  /** Pods row by row, each as large as what it takes of the node. @param {CanvasRenderingContext2D} paint @param {Node} node
   * @param {{x: number, y: number, width: number, height: number}} body @param {number} size */
  drawPods(paint, node, body, size) {
    const pods = [...node.on.values()].filter(takesRoom);
    if (!pods.length) return;
    const share = (/** @type {PodRow} */ pod) => Math.max(node.cpu ? pod.cpu / node.cpu : 0, node.memory ? pod.memory / node.memory : 0, node.pods ? 1 / node.pods : 0);
    const total = pods.reduce((sum, pod) => sum + share(pod), 0);
    const scale = total > 1 ? 1 / total : 1;
    const rows = Math.max(1, Math.min(Math.round(Math.sqrt(pods.length / Math.max(total * scale, 0.05))), Math.floor(body.height / 4)));
    const tall = body.height / rows, area = body.width * body.height;
    let left = 0, row = rows - 1;
    paint.font = "10px system-ui, sans-serif";
    for (const pod of pods) {
      let wide = Math.max(2, (share(pod) * scale * area) / tall);
      while (wide > 0.01 && row >= 0) {
        const part = Math.min(wide, body.width - left);
        this.drawPod(paint, node, pod, body.x + left, body.y + row * tall, part, tall, size);
        left += part;
        wide -= part;
        if (left >= body.width - 0.5) { left = 0; row--; }
      }
    }
  }

  /** @param {CanvasRenderingContext2D} paint @param {Node} node @param {PodRow} pod @param {number} x @param {number} y @param {number} wide @param {number} tall @param {number} size */
  drawPod(paint, node, pod, x, y, wide, tall, size) {
    const gap = wide > 4 && tall > 4 ? 1 : 0;
    const shown = this.podColours ? this.podColours.names.get(this.podColours.of(pod)) || this.ink.faint : ramp(Math.min(100, fullness(node)));
    paint.fillStyle = shown;
    paint.fillRect(x, y, Math.max(0.5, wide - gap), Math.max(0.5, tall - gap));
    if (pod.state === "Starting" && tall > 5) {
      paint.fillStyle = this.ink.track;
      paint.fillRect(x + 1, y + 1, Math.max(0, wide - gap - 2), Math.max(0, (tall - gap) / 2 - 1));
    }
    if (pod.state === "Terminating" && tall > 5) {
      paint.strokeStyle = this.ink.track;
      paint.lineWidth = 1;
      paint.beginPath();
      paint.moveTo(x, y + tall - gap);
      paint.lineTo(x + wide - gap, y);
      paint.stroke();
    }
    if (size >= POD_NAMES_FROM && wide > 44 && tall > 13) {
      paint.fillStyle = "#ffffff";
      paint.fillText(shortened(paint, pod.name, wide - 6), x + 3, y + tall / 2);
    }
  }

  /** Cordoned nodes are hatched, those that are not ready are crossed, those that boot have a dotted edge. @param {CanvasRenderingContext2D} paint @param {Node} node @param {number} x @param {number} y @param {number} size */
  drawMark(paint, node, x, y, size) {
    const why = mark(node);
    if (!why) return;
    if (why === "starting") {
      paint.save();
      paint.setLineDash([3, 3]);
      paint.lineWidth = size > 20 ? 2 : 1;
      paint.strokeStyle = this.ink.soft;
      paint.strokeRect(x + 1, y + 1, size - 2, size - 2);
      paint.restore();
      return;
    }
    paint.save();
    paint.beginPath();
    paint.rect(x, y, size, size);
    paint.clip();
    paint.lineWidth = size > 20 ? 2 : 1;
    paint.strokeStyle = why === "cordoned" ? this.ink["wait-fill"] : this.ink["bad-fill"];
    paint.beginPath();
    if (why === "cordoned") for (let at = -size; at < size; at += Math.max(4, size / 8)) { paint.moveTo(x + at, y + size); paint.lineTo(x + at + size, y); }
    else { paint.moveTo(x, y); paint.lineTo(x + size, y + size); paint.moveTo(x + size, y); paint.lineTo(x, y + size); }
    paint.stroke();
    paint.strokeRect(x, y, size, size);
    paint.restore();
  }
}

/** @param {CanvasRenderingContext2D} paint @param {string} text @param {number} room */
function shortened(paint, text, room) {
  if (paint.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const kept = Math.ceil((low + high) / 2);
    if (paint.measureText(cut(text, kept)).width <= room) low = kept;
    else high = kept - 1;
  }
  return low < 3 ? "" : cut(text, low);
}

/** So many characters of both ends. @param {string} text @param {number} kept */
function cut(text, kept) {
  return `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
}
