// Prints the log of the workload that is named, to its end, whatever goes away meanwhile: node follow-log.mjs wl_…
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const { NODUS_BASE_URL = "http://127.0.0.1:4000", NODUS_API_KEY } = process.env;
const id = process.argv[2];
if (!id || !NODUS_API_KEY) {
  console.error("usage: node follow-log.mjs wl_…, with NODUS_API_KEY, and NODUS_BASE_URL where it is another one");
  process.exit(2);
}
const client = createClient({
  url: `${NODUS_BASE_URL.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { Authorization: `Bearer ${NODUS_API_KEY}` },
  retryAttempts: 0, // it would ask from the old cursor again, and print twice: below it is asked from the new one
  connectionAckWaitTimeout: 10_000,
  keepAlive: 15_000,
  on: closeWhenSilent(10_000),
});
const query = `subscription logs($id: ID!, $after: String) {
  workloadLogs(workloadId: $id, after: $after) { data cursor complete }
}`;
/** Statuses and close codes that speak of the moment: too slow, too much at once, a part that is away. */
const PASSING = new Set([408, 429, 502, 503, 504, 4408, 4429]);

let after = null;
for (let complete = false; !complete; ) {
  try {
    for await (const { data, errors } of client.iterate({ query, variables: { id, after } })) {
      if (errors) throw errors;
      process.stdout.write(Buffer.from(data.workloadLogs.data, "base64"));
      ({ cursor: after, complete } = data.workloadLogs);
      if (complete) break;
    }
  } catch (error) {
    const refusal = refusalIn(error);
    if (refusal) {
      console.error(refusal);
      process.exitCode = 1;
      break;
    }
  }
  // Also after a stream that ended well but too early, as those of a gateway that stops do.
  if (!complete) await new Promise((resolve) => setTimeout(resolve, 1_000));
}
await client.dispose();

/** Why trying again would not help; null for what passes: a connection that broke, a part that is away. */
function refusalIn(error) {
  if (Array.isArray(error)) {
    const refused = error.find(({ extensions }) => !PASSING.has(extensions?.status));
    return refused ? `${refused.extensions?.code}: ${refused.message}` : null;
  }
  // The server closes the socket so, with 4401 for a key that does not count.
  const refused = error.code >= 4400 && error.code < 4500 && !PASSING.has(error.code);
  return refused ? `${error.code}: ${error.reason}` : null;
}

/** Ends a socket whose other side does not answer a ping in time: it went without a word. */
function closeWhenSilent(pongMs) {
  let socket;
  let deadline;
  return {
    opened: (opened) => {
      socket = opened;
    },
    ping: (received) => {
      if (!received) deadline = setTimeout(() => socket.terminate(), pongMs);
    },
    pong: (received) => {
      if (received) clearTimeout(deadline);
    },
    closed: () => clearTimeout(deadline),
  };
}
