import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "../telemetry/logger.ts";
import { type Agreement, Disagreement, holdAgreements } from "./agreement.ts";

/** Name of the lock within a database: any constant that nothing else uses. */
const PLATFORM_LOCK = 4_711_001_003n;
const HEARTBEAT_MS = 5_000;
const REGAIN_PAUSE_MS = 500;

/**
 * `alone`: the platform in one process, which nothing else may run beside. `member`: one of several processes of a
 * deployment, which run beside each other and never beside an `alone` one.
 */
export type Membership = "alone" | "member";

/** Who holds a database, as far as the database knows. */
export interface Holder {
  readonly pid: number | null;
  readonly host: string | null;
  readonly since: Date;
}

/** Another platform runs on this database. */
export class DatabaseInUse extends Error {
  override readonly name = "DatabaseInUse";
  readonly holder: Holder | null;

  constructor(holder: Holder | null) {
    const who = holder?.pid ? `process ${holder.pid} on ${holder.host}` : "another process";
    const since = holder ? `, since ${holder.since.toISOString()}` : "";
    super(
      `Another platform runs on this database: ${who}${since}. ` +
        "Stop it first, or give this one a database of its own (DATABASE_URL, or another NODUS_DATA_DIR).",
    );
    this.holder = holder;
  }
}

export interface PlatformLock {
  /** True while the database confirms the lock; false while the connection is being made again. */
  held(): boolean;
  release(): Promise<void>;
}

export interface PlatformLockOptions {
  url: string;
  membership: Membership;
  logger: Logger;
  /** What this process must have like the others of its deployment. */
  agreements?: readonly Agreement[];
  /** Called once when another platform, or another kind of process, was faster while our connection was gone: this one must stop. */
  onLost(error: DatabaseInUse | Disagreement): void;
}

/**
 * Takes the database for this platform; throws `DatabaseInUse` when another one has it, and `Disagreement` when a
 * process of the same deployment has something else that must be alike. The lock lives as long as one
 * connection of its own, so a killed platform needs no clean-up; the connection must not go through a transaction
 * pooler. When it breaks, the lock is taken again as soon as the database answers.
 */
export async function lockPlatform(options: PlatformLockOptions): Promise<PlatformLock> {
  const stopping = new AbortController();
  let client = await take(options);
  let held = true;

  async function keep(): Promise<void> {
    for (;;) {
      await broken(client, stopping.signal);
      held = false;
      await client.end().catch(() => {}); // broken anyway
      if (stopping.signal.aborted) return;
      options.logger.warn("the connection that holds the platform's lock broke; the lock is taken again");
      const again = await regain(options, stopping.signal);
      if (!again) return;
      client = again;
      held = true;
      options.logger.info("the platform's lock is held again");
    }
  }

  const kept = keep();
  return {
    held: () => held,
    release: async () => {
      stopping.abort();
      await kept;
    },
  };
}

async function take({ url, membership, agreements = [] }: PlatformLockOptions): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: `nodus ${process.pid}@${hostname()}`.slice(0, 63),
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
  client.on("error", () => {}); // `broken` looks at the connection's end
  try {
    await client.connect();
    const suffix = membership === "member" ? "_shared" : "";
    const { rows } = await client.query(`select pg_try_advisory_lock${suffix}($1) as locked`, [PLATFORM_LOCK]);
    if (!rows[0].locked) throw new DatabaseInUse(await findHolder(client));
    await holdAgreements(client, agreements);
    return client;
  } catch (error) {
    await client.end().catch(() => {}); // the first error is the one that counts
    throw error;
  }
}

/** Null when stopped meanwhile, or when another platform was faster. */
async function regain(options: PlatformLockOptions, stop: AbortSignal): Promise<pg.Client | null> {
  while (!stop.aborted) {
    try {
      return await take(options);
    } catch (error) {
      if (error instanceof DatabaseInUse || error instanceof Disagreement) {
        if (error instanceof Disagreement || !isOurselves(error.holder)) {
          options.onLost(error);
          return null;
        }
      } else options.logger.warn({ err: error }, "the database does not answer the platform's lock");
    }
    await pause(REGAIN_PAUSE_MS, stop);
  }
  return null;
}

/** Our own former session, which the server has not noticed to be gone. */
function isOurselves(holder: Holder | null): boolean {
  return holder?.pid === process.pid && holder.host === hostname();
}

/** Resolves when the connection is broken or its server does not answer, or on `stop`. */
async function broken(client: pg.Client, stop: AbortSignal): Promise<void> {
  const ended = new AbortController();
  client.once("end", () => ended.abort());
  const either = AbortSignal.any([ended.signal, stop]);
  while (!either.aborted) {
    await pause(HEARTBEAT_MS, either);
    if (either.aborted) return;
    const answered = await Promise.race([
      client.query("select 1").then(
        () => true,
        () => false,
      ),
      pause(HEARTBEAT_MS, either).then(() => false),
    ]);
    if (!answered) return;
  }
}

async function findHolder(client: pg.Client): Promise<Holder | null> {
  const { rows } = await client.query(
    `select a.application_name as name, a.backend_start as since
       from pg_locks l join pg_stat_activity a using (pid)
      where l.locktype = 'advisory' and l.granted and l.objsubid = 1
        and l.database = (select oid from pg_database where datname = current_database())
        and (l.classid::bigint << 32) | l.objid::bigint = $1
      order by a.backend_start limit 1`,
    [PLATFORM_LOCK],
  );
  const holder = rows[0] as { name: string; since: Date } | undefined;
  if (!holder) return null;
  const [, pid, host] = /^nodus (\d+)@(.*)$/.exec(holder.name) ?? [];
  return { pid: pid ? Number(pid) : null, host: host ?? null, since: holder.since };
}

async function pause(ms: number, stop: AbortSignal): Promise<void> {
  await sleep(ms, null, { signal: stop }).catch(() => {}); // woken early is fine
}
