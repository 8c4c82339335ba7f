// Steps as bars above nodes as heat, in the same columns; a cell can be pointed at, clicked and reached by keys.

import { colours, ramp } from "./colours.js";
import { bar, clamp, counted, h, number, percent } from "./dom.js";
import { ABSENT } from "./heat.js";

const STRIP = 96;
const AXIS = 20;
const WHOLE = 16;
const LISTED = 120;

export class Drawing {
  constructor(place, heat, steps) {
    this.heat = heat;
    this.steps = steps.map((step) => ({ bound: 0, unschedulable: 0, failed: 0, deleted: 0, preempted: 0, waiting: 0, ...step }));
    this.column = this.steps.length - 1;
    this.row = -1;
    this.strip = h("canvas", { class: "plot", "aria-hidden": "true" });
    this.map = h("canvas", { class: "plot", id: "heat", tabindex: 0, role: "img",
      "aria-label": "Steps, and nodes over steps. Arrow keys move, the description follows below.", "aria-describedby": "readout" });
    this.readout = h("div", { class: "readout", id: "readout", "aria-live": "polite" });
    this.tip = h("div", { id: "tip", hidden: true });
    place.replaceChildren(this.controls(), this.strip, this.map, this.readout);
    document.body.append(this.tip);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(place);
    this.redo();
  }

  controls() {
    const heat = this.heat;
    const choice = (name, options, chosen, given) => h("label", {}, name, h("select", { id: `by-${name.replaceAll(" ", "-")}`, on: { change: (e) => chosen(e.target.value) } },
      options.map(([value, text]) => h("option", { value, selected: value === given }, text))));
    let order = heat.order, view = "nodes";
    const arrange = () => { heat.arrange(order, view); this.row = Math.min(this.row, heat.rows - 1); this.redo(); };
    const happening = [["bound", "pods bound"], ["unschedulable", "tried in vain"], ["deleted", "objects deleted"], ["waiting", "waiting at the end"]];
    const legend = h("span", { class: "legend" }, happening.filter(([name]) => this.steps.some((step) => step[name])).map(([name, text]) =>
      h("span", {}, h("i", { class: `i-${name}` }), text)));
    if (!heat.nodes.length) return h("div", { class: "controls" }, legend);
    return h("div", { class: "controls" },
      choice("show", heat.resources.map((name, place) => [place, name]), (value) => { heat.resource = Number(value); arrange(); }),
      heat.nodes.length > 1 && choice("order", [["name", "by name"], ["fullest", "fullest first"]], (value) => { order = value; arrange(); }, order),
      heat.ends.length > 0 && choice("of a step", [["peak", "its peak"], ["end", "its end"]], (value) => { heat.of(value); arrange(); }),
      heat.nodes.length > 20 && choice("as", [["nodes", "nodes"], ["crowds", "counts by fullness"]], (value) => { view = value; arrange(); }),
      legend, this.scale());
  }

  scale() {
    const canvas = h("canvas", { width: 100, height: 10 });
    const paint = canvas.getContext("2d");
    for (let x = 0; x <= 100; x++) { paint.fillStyle = ramp(x); paint.fillRect(x, 0, 1, 10); }
    this.unit = h("span", {});
    return h("span", { class: "legend" }, h("span", {}, "0", canvas, this.unit),
      this.heat.levels.some((rows) => rows.some((level) => level > 200 && level !== ABSENT)) && h("span", {}, h("i", { class: "i-failed" }), "over"),
      this.heat.marks.size > 0 && [...this.heat.marks.values()].some((mark) => /^(NotReady|unreachable)/.test(mark)) && h("span", {}, h("i", { class: "i-broken" }), "not ready"),
      this.heat.marks.size > 0 && [...this.heat.marks.values()].some((mark) => !/^(NotReady|unreachable)/.test(mark)) && h("span", {}, h("i", { class: "i-closed" }), "cordoned or tainted"));
  }

  redo() { this.draw(); this.tell(); this.name(); }

  // What the colours mean.
  name() {
    const { heat } = this;
    const when = heat.levels === heat.peaks && heat.ends.length ? ", at most in a step" : "";
    const mean = heat.size > 1 ? `; a row is ${heat.size} nodes, their mean` : "";
    if (this.unit) this.unit.textContent = heat.view === "nodes" ? `100 % requested${when}${mean}` : counted(heat.nodes.length, "node");
  }

  measure() {
    const style = getComputedStyle(this.map.parentElement);
    const width = this.map.parentElement.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    this.gutter = this.heat.nodes.length || width > 640 ? clamp(width * 0.16, 64, 170) : 44;
    this.width = width;
    this.columnWidth = Math.min((width - this.gutter - 2) / Math.max(this.steps.length, 1), 360);
    const rows = this.heat.nodes.length ? this.heat.rows : 0;
    this.rowHeight = rows <= 28 ? 20 : rows <= 60 ? 11 : Math.max(2, Math.floor(560 / rows));
    this.top = AXIS + (rows ? WHOLE + 4 : 0);
    this.height = this.top + rows * this.rowHeight + 2;
    Object.assign(this.map.dataset, { gutter: this.gutter, columnWidth: this.columnWidth, rowHeight: this.rowHeight, top: this.top });
  }

  canvas(element, height) {
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(this.width * ratio);
    element.height = Math.round(height * ratio);
    element.style.height = `${height}px`;
    const paint = element.getContext("2d");
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.font = "12px system-ui, sans-serif";
    paint.textBaseline = "middle";
    return paint;
  }

  x(column) { return this.gutter + column * this.columnWidth; }

  draw() {
    this.measure();
    if (this.width < 40) return;
    this.ink = colours();
    this.drawStrip(this.canvas(this.strip, STRIP));
    const paint = this.canvas(this.map, this.height);
    this.drawAxis(paint);
    if (this.heat.nodes.length) this.drawHeat(paint);
    this.drawCursor(paint);
  }

  drawStrip(paint) {
    const { ink, steps } = this;
    const most = Math.max(1, ...steps.map((s) => Math.max(s.bound + s.unschedulable, s.deleted, s.waiting)));
    const base = STRIP - 4, room = STRIP - 18;
    const tall = (value) => (value ? Math.max(2, (value / most) * room) : 0);
    paint.fillStyle = ink.soft;
    paint.textAlign = "right";
    paint.fillText(number(most), this.gutter - 8, STRIP - 4 - room);
    paint.fillText("count", this.gutter - 8, base - 5);
    paint.fillStyle = ink.line;
    paint.fillRect(this.gutter, base, this.columnWidth * steps.length, 1);
    paint.fillRect(this.gutter, base - room, this.columnWidth * steps.length, 1);
    steps.forEach((step, column) => {
      const gap = this.columnWidth > 6 ? Math.min(4, this.columnWidth * 0.15) : 0.5;
      const left = this.x(column) + gap, wide = this.columnWidth - 2 * gap;
      const main = wide > 8 ? wide * 0.66 : wide, side = wide - main;
      const bound = tall(step.bound), failed = tall(step.unschedulable), gone = tall(step.deleted);
      paint.fillStyle = ink["good-fill"];
      paint.fillRect(left, base - bound, main, bound);
      paint.fillStyle = ink["bad-fill"];
      paint.fillRect(left, base - bound - failed, main, failed);
      paint.fillStyle = ink["odd-fill"];
      if (side) paint.fillRect(left + main + 1, base - gone, side - 1, gone);
    });
    this.drawWaiting(paint, base, room, most);
  }

  drawWaiting(paint, base, room, most) {
    if (!this.steps.some((step) => step.waiting)) return;
    paint.strokeStyle = this.ink["wait-fill"];
    paint.lineWidth = 2;
    paint.beginPath();
    this.steps.forEach((step, column) => {
      const y = base - (step.waiting / most) * room;
      if (!column) paint.moveTo(this.x(column), y);
      else paint.lineTo(this.x(column), y);
      paint.lineTo(this.x(column + 1), y);
    });
    paint.stroke();
  }

  drawAxis(paint) {
    paint.fillStyle = this.ink.soft;
    paint.textAlign = "right";
    paint.fillText("step", this.gutter - 8, AXIS / 2);
    paint.textAlign = "center";
    const every = Math.ceil(34 / this.columnWidth);
    this.steps.forEach((step, column) => {
      if (column % every === 0) paint.fillText(step.step, this.x(column) + this.columnWidth / 2, AXIS / 2);
    });
  }

  drawHeat(paint) {
    const { heat, ink } = this;
    const gap = this.columnWidth > 6 ? 1 : 0, split = this.rowHeight > 6 ? 1 : 0;
    const cell = (column, y, height, fill) => {
      paint.fillStyle = fill;
      paint.fillRect(this.x(column), y, Math.max(this.columnWidth - gap, 0.6), height);
    };
    const shade = (share) => (share > 100 ? ink["bad-fill"] : ramp(share));
    this.rowLabel(paint, "all nodes", AXIS + WHOLE / 2, ink.text);
    heat.columns.forEach((_, column) => {
      const level = (heat.whole[heat.resource] || [])[column];
      cell(column, AXIS, WHOLE, level == null || level < 0 ? ink.absent : shade(level / 10));
      for (let row = 0; row < heat.rows; row++) {
        const held = heat.cell(row, column);
        const fill = !held.count ? ink.absent : held.mean == null ? ramp(100 * Math.sqrt(held.count / heat.nodes.length)) : shade(held.mean);
        cell(column, this.top + row * this.rowHeight, this.rowHeight - split, fill);
        if (held.count) this.drawMark(paint, column, row, this.rowHeight - split);
      }
    });
    const every = Math.ceil(15 / this.rowHeight);
    for (let row = 0; row < heat.rows; row += every > 1 ? Math.max(every, Math.ceil(44 / this.rowHeight)) : 1) {
      const name = heat.view === "nodes" && every > 1 ? heat.nodes[heat.groups[row][0]] : heat.label(row);
      this.rowLabel(paint, name, Math.max(this.top + (row + 0.5) * this.rowHeight, this.top + 8), ink.soft);
    }
  }

  // A bar at the left of a cell: all of its height if nodes are not ready, thin if they are closed to pods.
  drawMark(paint, column, row, height) {
    const { broken, closed } = this.heat.marked(row, column);
    if (!broken && !closed) return;
    const x = this.x(column), y = this.top + row * this.rowHeight, wide = this.columnWidth - (this.columnWidth > 6 ? 1 : 0);
    paint.fillStyle = this.ink["bad-fill"];
    if (!broken) { paint.fillStyle = this.ink["wait-fill"]; paint.fillRect(x, y, Math.min(5, wide / 2), height); return; }
    paint.fillRect(x, y, Math.min(8, wide / 2), height);
    if (height < 6 || wide < 16) return;
    paint.save();
    paint.beginPath();
    paint.rect(x, y, wide, height);
    paint.clip();
    paint.strokeStyle = this.ink["bad-fill"];
    paint.lineWidth = 2;
    paint.beginPath();
    for (let at = x - height; at < x + wide; at += 10) { paint.moveTo(at, y + height); paint.lineTo(at + height, y); }
    paint.stroke();
    paint.restore();
  }

  rowLabel(paint, text, y, fill) {
    const room = this.gutter - 12;
    let shown = text;
    while (shown.length > 3 && paint.measureText(shown).width > room) shown = `${shown.slice(0, shown.endsWith("…") ? -2 : -1)}…`;
    paint.fillStyle = fill;
    paint.textAlign = "right";
    paint.fillText(shown, this.gutter - 8, y);
  }

  drawCursor(paint) {
    paint.strokeStyle = this.ink.text;
    paint.lineWidth = 1;
    const left = Math.round(this.x(this.column)) - 0.5, wide = Math.max(Math.round(this.columnWidth), 3);
    paint.strokeRect(left, 0.5, wide, this.height - 1);
    if (this.row < 0) return;
    paint.lineWidth = 2;
    const tall = Math.max(this.rowHeight, 4);
    paint.strokeRect(left, this.top + this.row * this.rowHeight - 1, wide, tall + 1);
  }

  // The cell at a point of a canvas; row -1 is the whole step.
  at(event, element) {
    const box = element.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.gutter) / this.columnWidth);
    const row = element === this.map ? Math.floor((event.clientY - box.top - this.top) / this.rowHeight) : -1;
    if (column < 0 || column >= this.steps.length) return null;
    return { column, row: this.heat.nodes.length && row < this.heat.rows ? Math.max(row, -1) : -1 };
  }

  listen() {
    for (const element of [this.strip, this.map]) {
      element.addEventListener("mousemove", (event) => this.hover(event, this.at(event, element)));
      element.addEventListener("mouseleave", () => { this.tip.hidden = true; });
      element.addEventListener("click", (event) => {
        const found = this.at(event, element);
        if (found) this.choose(found.column, found.row);
      });
    }
    this.map.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-1e9, 0], End: [1e9, 0],
      PageUp: [0, -10], PageDown: [0, 10] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const rows = this.heat.nodes.length ? this.heat.rows : 0;
    this.choose(clamp(this.column + move[0], 0, this.steps.length - 1), clamp(this.row + move[1], -1, rows - 1));
  }

  choose(column, row) {
    this.column = column;
    this.row = row;
    this.redo();
  }

  hover(event, found) {
    this.tip.hidden = !found;
    if (!found) return;
    this.tip.replaceChildren(...this.summary(found.column, found.row));
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    this.tip.style.left = `${clamp(event.clientX + 14, 4, window.innerWidth - width - 4)}px`;
    this.tip.style.top = `${event.clientY + 18 + height > window.innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
  }

  summary(column, row) {
    const step = this.steps[column];
    if (row < 0) return [h("b", {}, `step ${step.step}`), h("div", {}, happened(step)), ...this.wholes(column).map(([name, share]) => h("div", {}, `${name}, all nodes: ${percent(share)}`))];
    return [h("b", {}, this.heat.label(row)), h("div", {}, `step ${step.step}, ${this.value(column, row)}`)];
  }

  wholes(column) {
    const levels = this.heat.resources.map((name, place) => [name, this.heat.whole[place][column]]);
    return levels.filter(([, level]) => level != null && level >= 0).map(([name, level]) => [name, level / 10]);
  }

  value(column, row) {
    const held = this.heat.cell(row, column);
    const name = this.heat.resources[this.heat.resource];
    if (held.mean == null) return this.heat.view === "nodes" ? "no such node" : `${counted(held.count, "node")} by ${name}`;
    const { broken, closed } = this.heat.marked(row, column);
    if (this.heat.groups[row].length === 1) {
      const node = this.heat.groups[row][0], mark = this.heat.mark(node, column);
      const end = this.heat.endShare(this.heat.resource, node, column);
      const told = end == null ? percent(held.mean) : `${percent(held.mean)} at most, ${end} at its end`;
      return `${mark ? `${mark}; ` : ""}${name} ${told}`;
    }
    const away = broken + closed ? `${broken ? `${broken} not ready; ` : ""}${closed ? `${closed} cordoned or tainted; ` : ""}` : "";
    return away + `${name} ${percent(held.mean)} on average of ${counted(held.count, "node")}, ${percent(held.least)} to ${percent(held.most)}`;
  }

  tell() {
    if (!this.steps.length) return;
    const step = this.steps[this.column];
    const left = h("div", {}, h("h3", {}, step.first === step.step ? `Step ${step.step}` : `Steps ${step.first} to ${step.step}`, h("small", {}, step.time || "")),
      h("ul", { class: "plain" }, (step.what || []).map((each) => h("li", {}, each))), h("p", {}, happened(step)));
    const when = !this.heat.ends.length ? "" : this.heat.levels === this.heat.peaks ? "at most in this step" : "at the end of this step";
    const whole = () => h("div", {}, h("h3", {}, "All nodes", h("small", {}, when)), bars(this.wholes(this.column)));
    this.readout.replaceChildren(left, this.row < 0 ? whole() : this.cellDetail());
  }

  cellDetail() {
    const { heat, row, column } = this;
    const behind = heat.behind(row, column);
    const shown = behind.slice(0, LISTED).map(({ node, share }) => [[heat.nodes[node], heat.mark(node, column)].filter(Boolean).join(": "), share]);
    const single = heat.view === "nodes" && heat.groups[row].length === 1;
    return h("div", {}, h("h3", {}, heat.label(row)), h("p", {}, this.value(column, row)),
      single ? this.offers(heat.groups[row][0]) : bars(shown),
      behind.length > LISTED && h("p", { class: "more" }, `and ${number(behind.length - LISTED)} more`));
  }

  offers(node) {
    const levels = this.heat.levels.map((rows) => rows[node * this.heat.columns.length + this.column]);
    const named = levels.map((level, place) => [`${this.heat.resources[place]} of ${this.heat.offer(place, node)}`, level / 2]);
    return bars(named.filter((_, place) => levels[place] !== ABSENT));
  }
}

// Names with bars and their percent.
function bars(rows) {
  return h("div", { class: "bars" }, rows.map(([name, share]) => h("div", { title: name },
    h("span", {}, name), bar(share, share > 100 ? "bad" : ""), h("span", {}, percent(share)))));
}

function happened(step) {
  const parts = [["bound", "bound"], ["preempted", "preempted"], ["waiting", "waiting at its end"]];
  const told = parts.filter(([name]) => step[name]).map(([name, text]) => `${number(step[name])} ${text}`);
  if (step.deleted) told.push(`${counted(step.deleted, "object")} deleted`);
  if (step.failed) told.push(`${counted(step.failed, "attempt")} found no node`);
  return told.length ? told.join(", ") : "no pod was tried";
}
