import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "graphql-ws";
import type { Bench, Served } from "../bench-place.ts";
import type { BenchRow, Outcome } from "../bench-row.ts";
import { connect, PlatformUser } from "../guest-run.ts";
import { memoryMib } from "../measure.ts";

const SUBSCRIPTIONS = 1_000;
const PER_SOCKET = 50;
const MOST_MIB = 450;
/** What a start leaves behind has been collected by then. */
const SETTLE_MS = 3_000;
const EVENTS = "subscription events($id: ID!) { workloadEvents(workloadId: $id) { cursor } }";
const SILENT = "subscription ($id: ID!) { silent(workloadId: $id) }";

/** Resident memory of the platform's process before anything was done, and with many open streams that have nothing to say. */
async function run(bench: Bench): Promise<Outcome[]> {
  const platform = await bench.platform();
  const bare = await bench.helper("baseline-process", "face");
  await sleep(SETTLE_MS);
  const idle = [memoryMib(platform.pid), memoryMib(bare.pid)] as const;
  const user = new PlatformUser(platform);
  const id = await user.submit("true", { requirements: { gpu: "H200", gpuCount: 8 } }); // waits for ever
  const clients = [...subscribe(platform, EVENTS, id), ...subscribe(bare, SILENT, id)];
  await sleep(SETTLE_MS);
  const open = [memoryMib(platform.pid), memoryMib(bare.pid)] as const;
  await Promise.all([...clients.map((client) => client.dispose()), user.close()]);
  const kib = (side: 0 | 1) => Math.round(((open[side].own - idle[side].own) * 1024) / SUBSCRIPTIONS);
  return [
    {
      ...outcome("memory, idle", idle[0].own, idle[1].own),
      aim: `≤ ${MOST_MIB} MiB`,
      met: idle[0].own <= MOST_MIB,
      note: `the platform's process; below it ${Math.round(idle[0].below)} MiB in other processes, PostgreSQL not counted; baseline: Fastify with hand-written routes`,
    },
    {
      ...outcome(`memory, ${SUBSCRIPTIONS} subscriptions`, open[0].own, open[1].own),
      note: `${kib(0)} KiB each, baseline ${kib(1)} KiB; ${PER_SOCKET} to a socket; baseline: graphql-ws on one schema with a silent source`,
    },
  ];
}

function outcome(what: string, nodus: number, baseline: number): Outcome {
  return {
    ...{ what, nodus: `${Math.round(nodus)} MiB`, baseline: `${Math.round(baseline)} MiB` },
    ...{ ratio: `+${Math.round(nodus - baseline)} MiB`, cpu: "", aim: "", met: null, note: "" },
  };
}

function subscribe(served: Served, query: string, id: string): Client[] {
  return Array.from({ length: SUBSCRIPTIONS / PER_SOCKET }, () => {
    const client = connect(served.origin);
    for (let i = 0; i < PER_SOCKET; i++)
      client.subscribe({ query, variables: { id } }, { next: () => {}, error: failed, complete: () => {} });
    return client;
  });
}

function failed(error: unknown): void {
  throw new Error(`a subscription ended: ${JSON.stringify(error)}`);
}

export const memory: BenchRow = { name: "memory", run };
