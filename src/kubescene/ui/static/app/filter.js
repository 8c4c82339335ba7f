// What is typed into a filter: words, `key=value` of labels, `ns=`, `node=`, `state=`; `!` before it means the opposite.

/**
 * @typedef {{text: string, fields: Record<string, string>, labels: Record<string, string>}} Subject
 * @typedef {(subject: Subject) => boolean} Test
 */

/** All parts must hold. @param {string} text @returns {Test} */
export function filterOf(text) {
  const tests = text.trim().split(/\s+/).filter(Boolean).map(partOf);
  return (subject) => tests.every((test) => test(subject));
}

/** @param {string} part @returns {Test} */
function partOf(part) {
  if (part.startsWith("!") && part.length > 1) {
    const test = partOf(part.slice(1));
    return (subject) => !test(subject);
  }
  const at = part.search(/!?=/);
  if (at > 0) {
    const isNot = part[at] === "!";
    const [name, value] = [part.slice(0, at), part.slice(at + (isNot ? 2 : 1))];
    return (subject) => matches(subject, name, value) !== isNot;
  }
  const word = part.toLowerCase();
  return (subject) => subject.text.toLowerCase().includes(word);
}

/** @param {Subject} subject @param {string} name @param {string} value `*` stands for anything */
function matches(subject, name, value) {
  const own = Object.hasOwn(subject.fields, name) ? subject.fields[name] : Object.hasOwn(subject.labels, name) ? subject.labels[name] : undefined;
  if (own === undefined) return false;
  if (!value.includes("*")) return own.toLowerCase() === value.toLowerCase();
  const pattern = value.split("*").map((each) => each.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*");
  return new RegExp(`^${pattern}$`, "i").test(own);
}
