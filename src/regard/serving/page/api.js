/** Requests to the server; every failure is thrown as a ServerError. */

import { readEvents } from "./events.js";

/** A failure with a message to show; `retryAfter` is the number of seconds to wait, if known. */
export class ServerError extends Error {
  constructor(message, { status = 0, retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

let key = null;

/** Send this API key with every request from now on; it is not stored. */
export function useKey(given) {
  key = given;
}

/** The models of the server. */
export async function fetchModels() {
  const response = await send("models");
  return (await response.json()).models;
}

/**
 * Translate a sentence; `onText` is called with the text as it grows; returns the whole answer.
 * @param {{q: string, model: string, prefix_tokens?: number[]}} request
 * @param {{onText: (text: string) => void, signal: AbortSignal}} options
 */
export async function translate(request, { onText, signal }) {
  const response = await send("stream", {
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

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer. Is “regard serve” still running?");
  }
  if (response.ok) return response;
  const retryAfter = Number(response.headers.get("Retry-After")) || null;
  throw new ServerError(await messageOf(response), { status: response.status, retryAfter });
}

/** The server's message, or one of our own if it sent none. */
async function messageOf(response) {
  const body = await response.json().catch(() => null);
  const message = typeof body?.error === "string" ? body.error : null;
  if (response.status === 429) return message ?? "The server is busy.";
  if (response.status === 413) return message ?? "The sentence is too long for this server.";
  return message ?? `The server answered with an error (${response.status}).`;
}
