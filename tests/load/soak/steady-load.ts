import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { isRetriable } from "../../crash/population.ts";
import { Crowd, openStreams } from "../../support/crowd.ts";
import { type Held, INSPECTABLE, Inspected } from "../../support/inspected.ts";
import { Platform } from "../../support/platform.ts";
import type { PlatformClient } from "../../support/platform-client.ts";
import { until } from "../../support/until.ts";
import { cancel, collect, LOGS, script, settles, submit, writes } from "../../support/workloads.ts";
import type { Plan } from "./plan.ts";

const SAMPLE_MS = 30_000;
/** A crowd of streams comes and goes once in so many samples; a tenth of it over server-sent events. */
const CROWD_EVERY = 10;
const PER_SOCKET = 180;
/** On a machine that is busy with other things, too. */
const PATIENCE_MS = 150_000;
const USERS = 2;
/** From the making of a request to the end that it asks for; work is to run by then. */
const DEADLINE_MS = 15_000;

/** A crowd of one key asks for more streams at once than a key may in a second, and may be larger than a team's. */
const ONE_KEY_FOR_ALL = { NODUS_REQUESTS_PER_KEY_PER_SECOND: "1000000", NODUS_STREAMS_PER_TEAM: "1000000" };

export interface HeldSample extends Held {
  readonly atMs: number;
  /** To the database, the one that counts them included. */
  readonly connections: number;
}

export interface SteadyTally {
  runs: number;
  /** Uses and crowds that were told to repeat the request, as happens on a machine that is too busy to answer in time. */
  askedToRepeat: number;
  crowds: number;
  /** Longest time until all streams of a crowd were served. */
  longestOpenMs: number;
  /** Longest time until no stream was held for a crowd that had gone. */
  longestLetGoMs: number;
  readonly samples: HeldSample[];
  readonly failures: string[];
}

/** A platform that lives all the time under load whose time-outs strike, and is looked at now and then. */
export async function steadyLoad(plan: Plan): Promise<SteadyTally> {
  const tally: SteadyTally = {
    runs: 0,
    askedToRepeat: 0,
    crowds: 0,
    longestOpenMs: 0,
    longestLetGoMs: 0,
    samples: [],
    failures: [],
  };
  const platform = await Platform.start({ ...INSPECTABLE, ...ONE_KEY_FOR_ALL });
  try {
    const inspected = await Inspected.open(platform);
    const users = Array.from({ length: USERS }, () => useUntilOver(platform, plan, tally));
    await Promise.all([...users, lookUntilOver(platform, inspected, plan, tally)]);
    inspected.close();
  } finally {
    await platform.dispose();
  }
  return tally;
}

async function useUntilOver(platform: Platform, plan: Plan, tally: SteadyTally): Promise<void> {
  while (!plan.isOver()) {
    const [name, use] = USES[plan.random(USES.length)]!;
    try {
      await use(platform.admin, plan);
      tally.runs++;
    } catch (error) {
      if (isRetriable(error)) tally.askedToRepeat++;
      else {
        tally.failures.push(`${name}: ${inspect(error, { depth: 1 })}`);
        plan.say(`FAILED ${name}: ${inspect(error)}`);
      }
    }
  }
}

const CONNECTIONS = `select count(*)::int as connections from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend'`;

type Use = (client: PlatformClient, plan: Plan) => Promise<void>;

const USES: readonly (readonly [name: string, use: Use])[] = [
  [
    "a run that ends by itself",
    async (client) => {
      const id = await submit(client, script("seq 2000; mkdir -p outputs; echo x > outputs/x"));
      await demand(await settles(client, id, PATIENCE_MS), "completed", null);
      await collect(client.overEvents(LOGS, { id }));
    },
  ],
  [
    "a run that its deadline ends",
    async (client) => {
      const completeBy = new Date(Date.now() + DEADLINE_MS).toISOString();
      const id = await submit(client, script("sleep 60", { outcome: { completeBy } })).catch(unlessPast(completeBy));
      if (id === null) return;
      await demand(await settles(client, id, PATIENCE_MS), "failed", "deadline_exceeded");
    },
  ],
  [
    "a run that is cancelled while somebody reads its log",
    async (client) => {
      const id = await submit(client, script("echo up; sleep 60"));
      await writes(client, id, "up", PATIENCE_MS);
      await Promise.all([collect(client.overSocket(LOGS, { id }), PATIENCE_MS), cancel(client, id)]);
      await demand(await settles(client, id, PATIENCE_MS), "cancelled", null);
    },
  ],
  [
    "requests whose callers do not wait for the answer",
    async (client, { random }) => {
      for (let n = 0; n < 50; n++) {
        const signal = AbortSignal.timeout(1 + random(20));
        const headers = { authorization: `Bearer ${client.key}` };
        await fetch(`${client.origin}/v1/workloads?limit=100`, { signal, headers })
          .then((answer) => answer.arrayBuffer())
          .catch(() => {}); // timed out, as meant
      }
    },
  ],
];

/** On a machine that is busy, a deadline may be past when the request is looked at: it is refused then, as it should be. */
function unlessPast(completeBy: string): (error: unknown) => null {
  return (error) => {
    if (Date.now() < Date.parse(completeBy)) throw error;
    if (!/completeBy|complete_by/.test(inspect(error))) throw error;
    return null;
  };
}

async function demand(
  end: { id?: string; status: string; reason: string | null },
  status: string,
  reason: string | null,
): Promise<void> {
  if (end.status !== status || (reason !== null && end.reason !== reason))
    throw new Error(`should be ${status} (${reason}): ${JSON.stringify(end)}`);
}

async function lookUntilOver(platform: Platform, inspected: Inspected, plan: Plan, tally: SteadyTally): Promise<void> {
  const startedAt = performance.now();
  for (let turn = 1; !plan.isOver(); turn++) {
    await sleep(SAMPLE_MS);
    if (turn % CROWD_EVERY === 0) await comeAndGo(platform.admin, plan, tally);
    const held = await inspected.held();
    const [backends] = await platform.sql<{ connections: number }>(CONNECTIONS);
    tally.samples.push({ ...held, ...backends!, atMs: performance.now() - startedAt });
    plan.say(
      `held ${mib(held.bytes)} MiB, resident ${mib(held.residentBytes)} MiB, ${held.handles} handles, ${held.fileDescriptors} descriptors, ${tally.runs} runs`,
    );
  }
}

/** Streams of silent work, opened and closed or cut off. */
async function comeAndGo(client: PlatformClient, plan: Plan, tally: SteadyTally): Promise<void> {
  let crowd: Crowd | null = null;
  try {
    const id = await submit(client, script("true", { requirements: { gpu: "B200" } }));
    const others = await openStreams(client);
    const cameAt = performance.now();
    const came = crowdOf(client, id, plan.streams);
    crowd = came;
    const served = async () => {
      const said = [...came.complaints.keys()];
      const faults = said.filter((one) => !isRetriable(one));
      if (said.length > 0) throw new Error((faults.length > 0 ? faults : said).join("\n"));
      return (await openStreams(client)) - others >= came.size * 0.99;
    };
    await until(`${came.size} streams are open`, served, { timeoutMs: 2 * PATIENCE_MS, everyMs: 500 });
    const openMs = performance.now() - cameAt;
    tally.longestOpenMs = Math.max(tally.longestOpenMs, openMs);
    crowd = null;
    await came.leave(tally.crowds % 2 === 0 ? "cut" : "close");
    const leftAt = performance.now();
    // A few belong to the load beside it.
    await until("nothing is held for them", async () => (await openStreams(client)) < 10, { timeoutMs: PATIENCE_MS });
    const tookMs = performance.now() - leftAt;
    tally.crowds++;
    tally.longestLetGoMs = Math.max(tally.longestLetGoMs, tookMs);
    const times = `open after ${openMs.toFixed(0)} ms, nothing was held ${tookMs.toFixed(0)} ms after they went`;
    plan.say(`${came.size} streams: ${times}`);
    await cancel(client, id);
  } catch (error) {
    if (isRetriable(error)) tally.askedToRepeat++;
    else {
      tally.failures.push(`streams: ${(error as Error).message}`);
      plan.say(`FAILED streams: ${(error as Error).stack}`);
    }
    await crowd?.leave("cut").catch((left) => plan.say(`they could not be cut off: ${(left as Error).message}`));
  }
}

function crowdOf(client: PlatformClient, id: string, streams: number): Crowd {
  const events = Math.ceil(streams / 10);
  const sockets = Math.ceil((streams - events) / PER_SOCKET);
  return new Crowd(client, { document: LOGS, ids: [id], sockets, perSocket: PER_SOCKET, events });
}

export function mib(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
