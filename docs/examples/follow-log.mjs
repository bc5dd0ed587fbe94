// Prints the log of the workload that is named, to its end, whatever goes away meanwhile: node follow-log.mjs wl_…
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const client = createClient({
  url: `${process.env.NODUS_BASE_URL.replace("http", "ws")}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { Authorization: `Bearer ${process.env.NODUS_API_KEY}` },
});
const query = `subscription logs($id: ID!, $after: String) {
  workloadLogs(workloadId: $id, after: $after) { data cursor complete }
}`;

let after = null;
for (let complete = false; !complete; ) {
  try {
    for await (const { data, errors } of client.iterate({ query, variables: { id: process.argv[2], after } })) {
      if (errors) throw errors;
      process.stdout.write(Buffer.from(data.workloadLogs.data, "base64"));
      ({ cursor: after, complete } = data.workloadLogs);
    }
  } catch (error) {
    if (![error].flat().every((e) => !e.extensions || e.extensions.status >= 502)) throw error; // refused
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}
await client.dispose();
