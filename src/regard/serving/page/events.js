/** Server-sent events, read from the body of a response (EventSource can only send GET requests). */

/**
 * Yield each event of a stream as `{name, data}`.
 * @param {ReadableStream<Uint8Array>} body
 */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      buffer = (buffer + value).replaceAll("\r\n", "\n");
      const blocks = buffer.split("\n\n");
      buffer = blocks.pop(); // the last one is incomplete
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event.data) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Parse one event; lines that begin with a colon are comments that keep the connection open. */
export function parseEvent(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (field === "event") name = value;
    if (field === "data") data.push(value);
  }
  return { name, data: data.join("\n") };
}
