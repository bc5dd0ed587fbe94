import type { Client } from "graphql-ws";
import { Database } from "../../../infra/db/database.ts";
import { systemClock } from "../../../infra/kernel/clock.ts";
import { openWakeups } from "../../../infra/live/open-wakeups.ts";
import { createLogger } from "../../../infra/telemetry/logger.ts";
import { allEntities } from "../../../roles/entities.ts";
import { appendEvent } from "../../../subgraphs/compute/workload/workload.transitions.ts";
import type { Bench, Served } from "../bench-place.ts";
import { type BenchRow, comparedRates, type Outcome, type Rate, spread } from "../bench-row.ts";
import type { FaceFacts } from "../face-process.ts";
import { connect } from "../guest-run.ts";
import { cpuMicrosOf, rateOf } from "../measure.ts";
import { Audience } from "./audience.ts";

const COUNTS = [1_000, 5_000];
/** Workloads that are followed; each has an equal share of the subscriptions. */
const WORKLOADS = 100;
const PER_SOCKET = 50;
/** Events on their way at a time, of different workloads. */
const LANES = 8;
const EVENTS =
  "subscription ($id: ID!, $after: Int) { item: workloadEvents(workloadId: $id, after: $after) { cursor } }";
const CURSORS = "subscription ($id: ID!, $after: Int) { cursor: workloadCursor(workloadId: $id, after: $after) }";

interface Followed {
  id: string;
  key: string;
  /** Number of the event before its last one: the last one tells that a subscription is open. */
  after: number;
}

/** How the subscriptions of one server are asked for. */
interface Side {
  served: Served;
  query: string;
  cursorOf: (data: never) => number;
}

/** Events that reach every one of many subscribers, each event followed by the next as soon as all have it. */
async function run(bench: Bench): Promise<Outcome[]> {
  const face = await bench.helper<FaceFacts>("face-process", "face");
  const bare = await bench.helper("baseline-process", "face");
  const { db, record } = await recorder(bench);
  const workloads = face.facts.tenants.flatMap(({ key, workloadIds }) => workloadIds.map((id) => ({ id, key })));
  const nodus: Side = {
    ...{ served: face, query: EVENTS },
    cursorOf: ({ item }: { item: { cursor: number } }) => item.cursor,
  };
  const baseline: Side = {
    ...{ served: bare, query: CURSORS },
    cursorOf: ({ cursor }: { cursor: number }) => cursor,
  };
  const outcomes: Outcome[] = [];
  for (const count of COUNTS) {
    const measure = async (side: Side) =>
      updates(side, await following(db, workloads.slice(0, WORKLOADS)), count, record);
    const [ours, theirs] = [await measure(nodus), await measure(baseline)];
    const note = `an event of one of ${WORKLOADS} workloads to its ${count / WORKLOADS} subscribers, ${LANES} events at a time; event to last subscriber ${spread(ours.timesMs)} (p50 / p95), baseline ${spread(theirs.timesMs)}; opened in ${ours.openMs.toFixed(0)} ms, baseline ${theirs.openMs.toFixed(0)} ms; baseline: graphql-ws on one schema, one statement for each notification`;
    const what = `updates to ${count} subscriptions`;
    outcomes.push(comparedRates({ what, nodus: ours.rate, baseline: theirs.rate, note }));
  }
  return outcomes;
}

type RecordEvent = (workloadId: string) => Promise<void>;

/** Records events as another process of the platform does, and wakes who follows them. */
async function recorder(bench: Bench): Promise<{ db: Database; record: RecordEvent }> {
  const url = await bench.database("face");
  const wakeups = await openWakeups({ databaseUrl: url, logger: createLogger({ level: "error", role: "bench" }) });
  bench.onClose("wake-ups of the updates", () => wakeups.close());
  const db = await Database.open({ url, entities: allEntities, poolSize: LANES });
  bench.onClose("database of the updates", () => db.close());
  db.announceTo((topic) => wakeups.announce(topic));
  const record = (id: string) => db.command((tx) => appendEvent(tx, id, "workload.progress", {}, systemClock.now()));
  return { db, record };
}

async function following(db: Database, workloads: readonly { id: string; key: string }[]): Promise<Followed[]> {
  const rows = await db.sql<{ id: string; event_seq: number }>(
    "select id, event_seq from compute.workload where id = any($1)",
    [workloads.map(({ id }) => id)],
  );
  const last = new Map(rows.map(({ id, event_seq }) => [id, event_seq]));
  return workloads.map((workload) => ({ ...workload, after: last.get(workload.id)! - 1 }));
}

interface Updates {
  /** Deliveries. */
  rate: Rate;
  /** From the event's command to its last subscriber. */
  timesMs: number[];
  openMs: number;
}

async function updates(side: Side, followed: Followed[], count: number, record: RecordEvent): Promise<Updates> {
  const share = count / WORKLOADS;
  const audience = new Audience(share);
  const startedAt = performance.now();
  const clients = subscribe(side, followed, share, audience);
  try {
    await audience.complete(followed.map(({ id }) => id));
    const openMs = performance.now() - startedAt;
    const free = [...followed];
    const timesMs: number[] = [];
    const one = async () => {
      const workload = free.shift()!;
      const eventAt = performance.now();
      await audience.hears(workload.id, () => record(workload.id));
      timesMs.push(performance.now() - eventAt);
      free.push(workload);
    };
    await rateOf(one, { lanes: LANES, warmUpMs: 1_000, measureMs: 1_000 });
    timesMs.length = 0;
    const cpuBefore = cpuMicrosOf(side.served.pid);
    const { perSecond } = await rateOf(one, { lanes: LANES, warmUpMs: 0, measureMs: 4_000 });
    const cpuMicros = (cpuMicrosOf(side.served.pid) - cpuBefore) / (timesMs.length * share);
    return { rate: { perSecond: perSecond * share, cpuMicros }, timesMs, openMs };
  } finally {
    await Promise.all(clients.map((client) => client.dispose()));
  }
}

function subscribe(side: Side, followed: Followed[], share: number, audience: Audience): Client[] {
  const clients: Client[] = [];
  for (const [key, workloads] of Map.groupBy(followed, ({ key }) => key)) {
    const wanted = workloads.flatMap((workload) => Array.from({ length: share }, () => workload));
    for (let from = 0; from < wanted.length; from += PER_SOCKET) {
      const client = connect(side.served.origin, key);
      clients.push(client);
      for (const { id, after } of wanted.slice(from, from + PER_SOCKET)) {
        const next = ({ data }: { data?: unknown }) => audience.take(id, side.cursorOf(data as never));
        const sink = { next, error: failed, complete: () => {} };
        client.subscribe({ query: side.query, variables: { id, after } }, sink);
      }
    }
  }
  return clients;
}

function failed(error: unknown): void {
  throw new Error(`a subscription ended: ${JSON.stringify(error)}`);
}

export const liveUpdates: BenchRow = { name: "live-updates", run };
