// Elements out of names and text. Text is only ever text: nothing here parses HTML.

export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, heard] of Object.entries(value)) element.addEventListener(event, heard);
    else if (name === "width%") element.style.width = `${value}%`;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((child) => child != null && child !== false));
  return element;
}

// What an element holds from now on; what is nothing is left out.
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child != null && child !== false));
  return element;
}

// The same, unless that is what it shows already: what somebody is about to click stays where it is.
export function refill(element, told, make) {
  const text = JSON.stringify(told);
  if (shownBy.get(element) === text) return;
  shownBy.set(element, text);
  fill(element, make());
}

const shownBy = new WeakMap();

export const byId = (id) => document.getElementById(id);
const grouped = new Intl.NumberFormat("en-US");
export const number = (value) => grouped.format(value);
export const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;
export const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

export function percent(share) {
  return share == null ? "no node" : `${Math.round(share * 10) / 10} %`;
}

export function bar(share, tone) {
  return h("span", { class: tone ? `bar ${tone}` : "bar" }, h("i", { "width%": clamp(share, 0, 100) }));
}
