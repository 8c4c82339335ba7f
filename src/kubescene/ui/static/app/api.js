// The server behind the page: requests, streams of lines, and whether it is there at all.

/** What a Kubernetes `Status` or a page of the simulator says went wrong. */
export class ApiError extends Error {
  /** @param {number} code @param {string} message @param {any} [status] */
  constructor(code, message, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const RETRY_MS = 1000;

/** Whether the server answers; `lost` and `back` are told to whoever listens. */
class Connection extends EventTarget {
  constructor() {
    super();
    this.isLost = false;
  }

  lose() {
    if (this.isLost) return;
    this.isLost = true;
    this.dispatchEvent(new Event("lost"));
    this.look();
  }

  look() {
    setTimeout(async () => {
      try {
        const answer = await fetch("/livez", { cache: "no-store" });
        if (!answer.ok) throw new Error("not yet");
        this.isLost = false;
        this.dispatchEvent(new Event("back"));
      } catch {
        this.look();
      }
    }, RETRY_MS);
  }
}

export const connection = new Connection();

/**
 * Who is asking, where the server wants to know: a bearer token, and how another one is had for one that is refused.
 * @type {{token: string, renew: ((refused: string) => Promise<void>) | null}}
 */
export const identity = { token: "", renew: null };

/**
 * One request. Objects are sent as JSON, text as it is with its `type`.
 * @param {string} path
 * @param {{method?: string, body?: any, type?: string, accept?: string, signal?: AbortSignal}} [given]
 * @returns {Promise<any>} the JSON, or the text of another type
 */
export async function ask(path, given = {}) {
  const answer = await reach(path, given);
  const type = answer.headers.get("content-type") || "";
  const text = await answer.text();
  const told = type.startsWith("application/json") && text ? JSON.parse(text) : text;
  if (answer.ok) return told;
  throw new ApiError(answer.status, (told && told.message) || text || answer.statusText, told);
}

/** @param {string} path @param {{method?: string, body?: any, type?: string, accept?: string, signal?: AbortSignal}} given */
async function reach(path, { method = "GET", body, type, accept, signal }) {
  const isText = typeof body === "string";
  /** @type {Record<string, string>} */
  const headers = {};
  if (body !== undefined) headers["content-type"] = type || (isText ? "application/yaml" : "application/json");
  if (accept) headers.accept = accept;
  for (;;) {
    const { token, renew } = identity;
    if (token) headers.authorization = `Bearer ${token}`;
    const answer = await sent(path, { method, headers, signal, body: body === undefined || isText ? body : JSON.stringify(body) });
    if (answer.status !== 401 || !renew) return answer;
    await renew(token);
  }
}

/** @param {string} path @param {RequestInit} request */
async function sent(path, request) {
  try {
    return await fetch(path, request);
  } catch (error) {
    if (request.signal && request.signal.aborted) throw error;
    connection.lose();
    throw new ApiError(0, "the server does not answer");
  }
}

/**
 * The lines of a streamed answer, until it ends.
 * @param {string} path @param {AbortSignal} signal
 * @returns {AsyncGenerator<any>}
 */
export async function* linesOf(path, signal) {
  const answer = await reach(path, { signal });
  if (!answer.ok || !answer.body) {
    const text = await answer.text();
    let told = null;
    try { told = JSON.parse(text); } catch { /* it is no Status */ }
    throw new ApiError(answer.status, (told && told.message) || text, told);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() || "";
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}
