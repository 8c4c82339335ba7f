// Values as YAML that people read and edit: block style, quoted only where it must be.

const PLAIN = /^[A-Za-z_./$(][A-Za-z0-9_./$()-]*(?: [A-Za-z0-9_./$()-]+)*$/;
const WORDS = /^(?:true|false|yes|no|on|off|null|nan|y|n)$/i;
const SHORT = 72;

/** @param {any} value @param {string} [indent] @returns {string} lines, each ended */
export function asYaml(value, indent = "") {
  if (Array.isArray(value) && value.length) return value.map((each) => `${indent}- ${nested(each, `${indent}  `)}`).join("");
  if (isMap(value) && Object.keys(value).length) {
    return Object.entries(value).map(([key, each]) => {
      if (!isLarge(each)) return `${indent}${scalar(key)}: ${flow(each)}\n`;
      return `${indent}${scalar(key)}:\n${asYaml(each, Array.isArray(each) ? indent : `${indent}  `)}`;
    }).join("");
  }
  return `${indent}${flow(value)}\n`;
}

/** An item of a list: its first line stands behind the dash. @param {any} value @param {string} indent */
const nested = (value, indent) => (isLarge(value) ? asYaml(value, indent).slice(indent.length) : `${flow(value)}\n`);

/** @param {any} value */
const isMap = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a value takes lines of its own. @param {any} value */
function isLarge(value) {
  if (typeof value !== "object" || value === null || !Object.keys(value).length) return false;
  const parts = Object.values(value);
  return parts.some((each) => typeof each === "object" && each !== null) || flow(value).length > SHORT;
}

/** On one line. @param {any} value @returns {string} */
function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (isMap(value)) return `{${Object.entries(value).map(([key, each]) => `${scalar(key)}: ${flow(each)}`).join(", ")}}`;
  return typeof value === "string" ? scalar(value) : JSON.stringify(value);
}

/** A string; what YAML could take for something else stands in quotes. @param {string} text */
const scalar = (text) => (PLAIN.test(text) && !WORDS.test(text) ? text : JSON.stringify(text));
