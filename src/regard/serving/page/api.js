/** What the page asks the server; whatever goes wrong comes back as a ServerError to show. */

import { readEvents } from "./events.js";

/** A failure in words for people; `retryAfter` seconds later it is worth another try. */
export class ServerError extends Error {
  constructor(message, { status = 0, retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

let key = null;

/** Send this API key with every translation from now on; it is kept nowhere. */
export function useKey(given) {
  key = given;
}

/** The models that the server has. */
export async function fetchModels() {
  const response = await ask("models");
  return (await response.json()).models;
}

/**
 * Translate a sentence; `onText` hears the text as it grows, and the whole answer is returned.
 * @param {{q: string, model: string, prefix_tokens?: number[]}} request
 * @param {{onText: (text: string) => void, signal: AbortSignal}} options
 */
export async function translate(request, { onText, signal }) {
  const response = await ask("stream", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(key ? { ...request, api_key: key } : request),
    signal,
  });
  try {
    for await (const { name, data } of readEvents(response.body)) {
      const value = JSON.parse(data);
      if (name === "token") onText(value.text);
      if (name === "done") return value;
      if (name === "error") {
        throw new ServerError(value.error, { status: value.status, retryAfter: value.retry_after });
      }
    }
  } catch (error) {
    if (error instanceof ServerError || error.name === "AbortError") throw error;
    throw new ServerError("The connection to the server broke off.");
  }
  throw new ServerError("The server stopped in the middle of the answer.");
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer. Is “regard serve” still running?");
  }
  if (response.ok) return response;
  const retryAfter = Number(response.headers.get("Retry-After")) || null;
  throw new ServerError(await reason(response), { status: response.status, retryAfter });
}

/** The server's own words where it has any. */
async function reason(response) {
  const body = await response.json().catch(() => null);
  const said = typeof body?.error === "string" ? body.error : null;
  if (response.status === 429) return said ?? "The server is busy.";
  if (response.status === 413) return said ?? "The sentence is too long for this server.";
  return said ?? `The server answered with an error (${response.status}).`;
}
