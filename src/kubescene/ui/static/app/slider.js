// The moments of a run as a strip, by steps or by virtual time: above the major steps, below what was bound, refused and gone.

import { colours } from "../shared/colours.js";
import { h, number } from "../shared/dom.js";

const TALL = 48;
const HEAD = 15;
const FINE = 1000;

/** @typedef {import("./story.js").Moment} Moment @typedef {"steps" | "time"} Axis */

export class Slider {
  /** @param {{chosen: (place: number) => void, played: () => void}} heard @param {Axis} axis */
  constructor(heard, axis) {
    this.heard = heard;
    this.axis = axis;
    /** @type {Moment[]} */
    this.moments = [];
    this.place = -1;
    this.range = /** @type {HTMLInputElement} */ (h("input", { type: "range", id: "slider", min: 0, max: 0, value: 0, "aria-label": "Moment of the scenario", on: {
      input: () => heard.chosen(this.placeOf(Number(this.range.value) / Math.max(1, Number(this.range.max)))), keydown: (/** @type {KeyboardEvent} */ event) => this.key(event) } }));
    this.strip = /** @type {HTMLCanvasElement} */ (h("canvas", { class: "plot", id: "steps", "aria-hidden": "true" }));
    for (const kind of ["pointerdown", "pointermove"]) this.strip.addEventListener(kind, (event) => this.dragged(/** @type {PointerEvent} */ (event)));
    this.element = h("div", { class: "slider" }, this.strip, this.range);
    this.redraw = () => this.draw();
    addEventListener("resize", this.redraw);
    addEventListener("themed", this.redraw);
  }

  leave() {
    removeEventListener("resize", this.redraw);
    removeEventListener("themed", this.redraw);
  }

  /** @param {Moment[]} moments */
  show(moments) {
    this.moments = moments;
    this.range.max = String(this.axis === "time" ? FINE : Math.max(0, moments.length - 1));
    this.go(this.place);
  }

  /** @param {Axis} axis */
  by(axis) {
    this.axis = axis;
    this.show(this.moments);
  }

  /** @param {number} place */
  go(place) {
    this.place = place;
    this.range.value = String(this.axis === "time" ? Math.round(FINE * this.shareOf(place)) : place);
    this.draw();
  }

  get began() { return this.moments.length ? this.moments[0].time : 0; }

  get lasted() { return this.moments.length ? this.moments[this.moments.length - 1].time - this.began : 0; }

  /** Where a moment begins on the axis, from 0 to 1. @param {number} place */
  shareOf(place) {
    if (this.axis !== "time" || !this.lasted) return place / Math.max(1, this.moments.length);
    return this.moments[place] ? (this.moments[place].time - this.began) / this.lasted : 0;
  }

  /** The moment at a place of the axis. @param {number} share */
  placeOf(share) {
    const last = this.moments.length - 1;
    if (this.axis !== "time" || !this.lasted) return Math.min(last, Math.round(share * last));
    return lastBefore(this.moments, this.began + share * this.lasted);
  }

  /** @param {PointerEvent} event */
  dragged(event) {
    if (!(event.buttons & 1) || !this.moments.length) return;
    if (event.type === "pointerdown") this.strip.setPointerCapture(event.pointerId);
    const box = this.strip.getBoundingClientRect(), share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    this.heard.chosen(this.axis === "time" ? this.placeOf(share) : Math.min(this.moments.length - 1, Math.floor(share * this.moments.length)));
  }

  /** Arrows go from moment to moment, with Shift from step to step, whatever the axis. @param {KeyboardEvent} event */
  key(event) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way && event.key !== " ") return;
    event.preventDefault();
    if (!way) this.heard.played();
    else this.heard.chosen(event.shiftKey ? majorFrom(this.moments, this.place, way > 0 ? 1 : -1) : this.place + way);
  }

  draw() {
    const { moments } = this, width = this.strip.clientWidth, ratio = window.devicePixelRatio || 1;
    if (!width || !moments.length) return;
    this.strip.width = width * ratio;
    this.strip.height = TALL * ratio;
    this.strip.style.height = `${TALL}px`;
    const paint = /** @type {CanvasRenderingContext2D} */ (this.strip.getContext("2d")), ink = colours();
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawSteps(paint, ink, width);
    const wide = this.axis === "time" ? 2 : Math.max(1, width / moments.length - 2);
    const most = Math.max(1, ...moments.map((each) => each.bound + each.failed + each.gone));
    moments.forEach((moment, at) => {
      const x = Math.min(width - wide, this.shareOf(at) * width);
      let base = TALL;
      for (const [count, fill] of /** @type {[number, string][]} */ ([[moment.bound, ink["good-fill"]], [moment.failed, ink["bad-fill"]], [moment.gone, ink["odd-fill"]]])) {
        const tall = count ? Math.max(2, (count / most) * (TALL - HEAD - 3)) : 0;
        paint.fillStyle = fill;
        paint.fillRect(x, base - tall, wide, tall);
        base -= tall;
      }
    });
    if (!moments[this.place]) return;
    paint.fillStyle = ink.text;
    paint.fillRect(Math.min(width - 2, this.shareOf(this.place) * width), 0, 2, TALL);
  }

  /** Major steps as bands, every other one shaded. @param {CanvasRenderingContext2D} paint @param {Record<string, string>} ink @param {number} width */
  drawSteps(paint, ink, width) {
    const { moments } = this;
    paint.font = "11px system-ui, sans-serif";
    let free = 0;
    for (let at = 0; at < moments.length;) {
      let end = at;
      while (end < moments.length && moments[end].major === moments[at].major) end++;
      const x = this.shareOf(at) * width, wide = (end < moments.length ? this.shareOf(end) : 1) * width - x;
      paint.fillStyle = moments[at].major % 2 ? ink.track : ink.absent;
      paint.fillRect(x, 0, Math.max(1, wide - 1), HEAD);
      const name = wide > 70 ? `step ${number(moments[at].major)}` : number(moments[at].major);
      if (x >= free && wide > 8) {
        paint.fillStyle = ink.soft;
        paint.fillText(name, x + 4, 11);
        free = x + paint.measureText(name).width + 8;
      }
      at = end;
    }
  }
}

/** The last moment that was there at a time. @param {Moment[]} moments @param {number} time */
export function lastBefore(moments, time) {
  let low = 0, high = moments.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (moments[middle].time <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The first moment of the next major step, or of this one or the one before. @param {Moment[]} moments @param {number} from @param {1 | -1} way */
export function majorFrom(moments, from, way) {
  const here = moments[from];
  if (!here) return Math.max(0, from);
  let to = from;
  if (way > 0) {
    while (to < moments.length - 1 && moments[to].major === here.major) to++;
    return to;
  }
  if (to > 0 && moments[to - 1].major !== here.major) to--;
  const { major } = moments[to];
  while (to > 0 && moments[to - 1].major === major) to--;
  return to;
}

/** Virtual time since the run began. @param {number} nanoseconds */
export function asTime(nanoseconds) {
  const seconds = Math.floor(nanoseconds / 1e9), part = (/** @type {number} */ value) => String(value).padStart(2, "0");
  return `+${Math.floor(seconds / 3600)}:${part(Math.floor(seconds / 60) % 60)}:${part(seconds % 60)}`;
}
