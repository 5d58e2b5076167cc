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

let longest = 10_000; // characters of one request; the server says how many it takes

/** The models of the server. */
export async function fetchModels() {
  const response = await send("models", key ? { headers: { "X-Api-Key": key } } : {});
  const { models, max_characters: most } = await response.json();
  longest = most ?? longest;
  return models;
}

/**
 * Translate a sentence; `onText` is called with the text as it grows; returns the whole answer.
 * @param {{q: string, model: string, prefix_tokens?: number[]}} request
 * @param {{onText: (text: string) => void, signal: AbortSignal}} options
 */
export const translate = (request, { onText, signal }) =>
  post("stream", request, { signal, onEvent: (name, { text }) => { if (name === "token") onText(text); } });

/**
 * Ask the server for a JSON answer.
 * @param {string} path  the route, as "intervene"
 * @param {object} request  its fields
 * @param {{signal?: AbortSignal}} [options]
 */
export async function ask(path, request, { signal } = {}) {
  return (await sendJson(path, request, signal)).json();
}

/**
 * Translate a text of any length, sentence by sentence, in as many requests as it needs.
 * @param {{q: string, model: string}} request
 * @param {{onSentences: (sentences: import("./whole.js").SourceSentence[]) => void,
 *   onFound: (from: number, found: import("./whole.js").Found[]) => void,
 *   signal: AbortSignal}} options  `onSentences` gets further sentences, `onFound` translations and
 *   the place of the first
 */
export async function translateText({ q, model }, { onSentences, onFound, signal }) {
  let before = 0;
  for (const part of partsOf(q, longest)) {
    let count = 0;
    const onEvent = (name, data) => {
      if (name === "sentences") {
        const found = data.sentences;
        found.at(-1).gap += /\s*$/.exec(part)[0]; // the server takes no account of it
        count = found.length;
        onSentences(found);
      }
      if (name === "translations") onFound(before + data.from, data.translations);
    };
    await post("text", { q: part, model }, { signal, onEvent });
    before += count;
  }
}

/** A text in parts that end with a line or, where a line is too long, with a sentence or a word. */
export function partsOf(text, most) {
  const parts = [];
  for (let rest = text; rest;) {
    const piece = rest.slice(0, most);
    const ends = [/^.*\n\s*/su, /^.*[.!?…。！？]\s+/su, /^.*\s+/su].map((end) => end.exec(piece)?.[0]);
    const part = rest.length <= most ? rest : ends.find(Boolean) ?? piece;
    if (part.trim()) parts.push(part);
    rest = rest.slice(part.length);
  }
  return parts;
}

/** Send a request and hear of its events; returns the data of the last. */
export async function post(path, request, { onEvent, signal }) {
  const response = await sendJson(path, request, signal);
  try {
    for await (const { name, data } of readEvents(response.body)) {
      const value = JSON.parse(data);
      if (name === "done") return value;
      if (name === "error") {
        throw new ServerError(value.error, { status: value.status, retryAfter: value.retry_after });
      }
      onEvent(name, value);
    }
  } catch (error) {
    if (error instanceof ServerError || error.name === "AbortError") throw error;
    throw new ServerError("The connection to the server broke off.");
  }
  throw new ServerError("The server stopped in the middle of the answer.");
}

const sendJson = (path, request, signal) => send(path, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(key ? { ...request, api_key: key } : request),
  signal,
});

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
