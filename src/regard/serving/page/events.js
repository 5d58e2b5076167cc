/** Server-sent events, read from the body of any answer (EventSource itself can only GET). */

/**
 * Yield each event of a stream as `{name, data}`.
 * @param {ReadableStream<Uint8Array>} body
 */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      waiting = (waiting + value).replaceAll("\r\n", "\n");
      const blocks = waiting.split("\n\n");
      waiting = blocks.pop(); // the last one is not finished
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event.data) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Read one event; lines that begin with a colon are comments that keep a connection open. */
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
