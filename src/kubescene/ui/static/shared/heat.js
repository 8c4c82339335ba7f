// Nodes over steps as numbers: which rows there are, and what each cell holds.

import { percent } from "./dom.js";

export const ABSENT = 255;
const ROWS = 280;
const BUCKETS = ["over 100 %", "90 to 100 %", "80 to 90 %", "70 to 80 %", "60 to 70 %", "50 to 60 %", "40 to 50 %",
  "30 to 40 %", "20 to 30 %", "10 to 20 %", "up to 10 %", "empty"];

function bucketOf(share) {
  if (share > 100) return 0;
  return share === 0 ? BUCKETS.length - 1 : Math.min(10, 10 - Math.floor((share - 1e-9) / 10));
}

export class Heat {
  constructor(told) {
    this.columns = told.columns || [];
    this.resources = told.resources || [];
    this.nodes = told.nodes || [];
    this.allocatable = told.allocatable || [];
    this.whole = told.whole || [];
    const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    this.peaks = (told.levels || []).map(bytes);
    this.ends = (told.ends || []).map(bytes);
    this.wholePeaks = this.whole;
    this.wholeEnds = told.wholeEnds || [];
    this.levels = this.peaks;
    this.marks = new Map();
    for (const [node, first, last, text] of told.marks || []) {
      for (let column = first; column <= last; column++) this.marks.set(node * this.columns.length + column, text);
    }
    this.resource = 0;
    this.order = this.nodes.length > ROWS ? "fullest" : "name";
    this.arrange(this.order, "nodes");
  }

  // Show the highest of each step, or how it ended.
  of(moment) {
    const atEnd = moment === "end" && this.ends.length;
    this.levels = atEnd ? this.ends : this.peaks;
    this.whole = atEnd ? this.wholeEnds : this.wholePeaks;
    this.crowdsOf = null;
  }

  // What keeps pods away from a node at the end of a step.
  mark(node, column) { return this.marks.get(node * this.columns.length + column) || ""; }

  // How many of the nodes of a row are broken, and how many keep pods away for another reason.
  marked(row, column) {
    let broken = 0, closed = 0;
    if (this.view === "nodes" && this.marks.size) {
      for (const node of this.groups[row]) {
        const mark = this.mark(node, column);
        if (/^(NotReady|unreachable)/.test(mark)) broken++;
        else if (mark) closed++;
      }
    }
    return { broken, closed };
  }

  // The share at the end of a step, where the highest of it is shown and is another.
  endShare(resource, node, column) {
    if (!this.ends.length || this.levels !== this.peaks) return null;
    const at = node * this.columns.length + column;
    const end = this.ends[resource][at];
    return end === this.peaks[resource][at] ? null : end === ABSENT ? "gone" : percent(end / 2);
  }

  // Percent of a node at a column, null where there was no such node.
  share(node, column) {
    const level = this.levels[this.resource][node * this.columns.length + column];
    return level === ABSENT ? null : level / 2;
  }

  // What a node offers; one word stands for all of them.
  offer(resource, node) {
    const known = this.allocatable[resource];
    return known.length === 1 ? known[0] : known[node];
  }

  arrange(order, view) {
    this.view = view;
    this.order = order;
    const all = this.nodes.map((_, node) => node);
    if (order === "fullest") {
      const means = all.map((node) => this.mean(node));
      all.sort((a, b) => means[b] - means[a] || a - b);
    }
    const size = Math.ceil(all.length / ROWS) || 1;
    this.size = size;
    this.groups = [];
    for (let start = 0; start < all.length; start += size) this.groups.push(all.slice(start, start + size));
    this.rows = view === "nodes" ? this.groups.length : BUCKETS.length;
  }

  mean(node) {
    let sum = 0, seen = 0;
    for (let column = 0; column < this.columns.length; column++) {
      const share = this.share(node, column);
      if (share != null) { sum += share; seen++; }
    }
    return seen ? sum / seen : -1;
  }

  members(row) {
    return this.view === "nodes" ? this.groups[row] : null;
  }

  // What a cell shows: how many nodes, and of these the mean, the least and the most.
  cell(row, column) {
    if (this.view !== "nodes") return this.crowd(row, column);
    let sum = 0, least = Infinity, most = -Infinity, count = 0;
    for (const node of this.groups[row]) {
      const share = this.share(node, column);
      if (share == null) continue;
      count++; sum += share; least = Math.min(least, share); most = Math.max(most, share);
    }
    return count ? { count, mean: sum / count, least, most } : { count: 0 };
  }

  crowd(row, column) {
    if (this.crowdsOf !== this.resource) { this.crowds = new Map(); this.crowdsOf = this.resource; }
    if (!this.crowds.has(column)) {
      const counts = BUCKETS.map(() => 0);
      for (let node = 0; node < this.nodes.length; node++) {
        const share = this.share(node, column);
        if (share != null) counts[bucketOf(share)]++;
      }
      this.crowds.set(column, counts);
    }
    return { count: this.crowds.get(column)[row] };
  }

  label(row) {
    if (this.view !== "nodes") return BUCKETS[row];
    const group = this.groups[row];
    const first = this.nodes[group[0]];
    if (group.length === 1) return first;
    return this.order === "name" ? `${first} … ${this.nodes[group[group.length - 1]]}` : `${first} and ${group.length - 1} more`;
  }

  // The nodes behind a cell, the fullest first.
  behind(row, column) {
    const among = this.view === "nodes" ? this.groups[row] : this.nodes.map((_, node) => node);
    const found = among.map((node) => ({ node, share: this.share(node, column) })).filter((each) => each.share != null);
    const kept = this.view === "nodes" ? found : found.filter((each) => bucketOf(each.share) === row);
    return kept.sort((a, b) => b.share - a.share || a.node - b.node);
  }
}
