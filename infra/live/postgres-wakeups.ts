import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { backoffMs, RECONNECT_BACKOFF } from "../queue/backoff.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Outgoing } from "./outgoing.ts";
import { Sleepers, type Wakeups } from "./wakeups.ts";

const CHANNEL = "nodus_wakeups";
const CONNECT_TIMEOUT_MS = 5_000;
/** A statement that takes longer than this means that the line is dead. */
const STATEMENT_TIMEOUT_MS = 5_000;
/** How often a silent line is tried. */
const PROBE_MS = 10_000;

/**
 * Wake-ups by PostgreSQL's notifications, over one connection of the process. They are sent in autocommit statements,
 * after the commands' commits: a NOTIFY within a transaction would make all commits of the database wait for each other.
 * The connection must be a direct one; a transaction pooler does not deliver notifications.
 */
export async function openPostgresWakeups(url: string, logger: Logger): Promise<Wakeups> {
  const line = new Line(url, logger);
  await line.open();
  return line;
}

class Line implements Wakeups {
  readonly #url: string;
  readonly #logger: Logger;
  readonly #sleepers: Sleepers;
  readonly #outgoing: Outgoing;
  readonly #closed = new AbortController();
  #client: pg.Client | null = null;
  #reconnecting: Promise<void> | null = null;
  #probe: NodeJS.Timeout | null = null;

  constructor(url: string, logger: Logger) {
    this.#url = url;
    this.#logger = logger;
    this.#sleepers = new Sleepers((err) => logger.error({ err }, "a sleeper failed when it was woken"));
    this.#outgoing = new Outgoing(
      (message) => this.#notify(message),
      (err) => logger.warn({ err }, "a wake-up could not be sent yet"),
    );
  }

  get healthy(): boolean {
    return this.#client !== null;
  }

  get listeners(): number {
    return this.#sleepers.count;
  }

  on(topic: string, f: () => void): () => void {
    return this.#sleepers.on(topic, f);
  }

  announce(topic: string): void {
    this.#sleepers.wake(topic);
    this.#outgoing.add(topic);
  }

  async open(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: STATEMENT_TIMEOUT_MS,
      keepAlive: true,
      application_name: "nodus wakeups",
    });
    const lost = (error?: Error) => this.#lose(client, error);
    client.on("error", lost).on("end", () => lost());
    client.on("notification", (heard) => this.#hear(client, heard));
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
    } catch (error) {
      client.end().catch(() => {}); // it never worked: the first error is the one to tell
      throw error;
    }
    if (this.#closed.signal.aborted) return void (await client.end());
    this.#client = client;
    this.#probe = setInterval(() => this.#tryLine(client), PROBE_MS).unref();
  }

  async close(): Promise<void> {
    await this.#outgoing.close();
    this.#closed.abort();
    if (this.#probe) clearInterval(this.#probe);
    await this.#reconnecting;
    const client = this.#client;
    this.#client = null;
    await client?.end();
  }

  async #notify(message: string): Promise<void> {
    const client = this.#client;
    if (!client) throw new Error("the line for wake-ups is down");
    try {
      await client.query("select pg_notify($1, $2)", [CHANNEL, message]);
    } catch (error) {
      this.#lose(client, error as Error);
      throw error;
    }
  }

  #hear(client: pg.Client, heard: pg.Notification): void {
    const own = heard.processId === (client as unknown as { processID: number }).processID;
    if (own) return; // woken without the round trip
    for (const topic of (heard.payload ?? "").split(" ")) this.#sleepers.wake(topic);
  }

  #tryLine(client: pg.Client): void {
    client.query("select 1").catch((error: Error) => this.#lose(client, error));
  }

  #lose(client: pg.Client, error?: Error): void {
    if (this.#client !== client || this.#closed.signal.aborted) return;
    this.#client = null;
    if (this.#probe) clearInterval(this.#probe);
    this.#outgoing.pause();
    this.#logger.warn({ err: error }, "the line for wake-ups is lost; followers look more often until it is back");
    client.end().catch(() => {}); // broken already
    this.#reconnecting ??= this.#reconnect().finally(() => {
      this.#reconnecting = null;
    });
  }

  async #reconnect(): Promise<void> {
    for (let failures = 1; !this.#closed.signal.aborted; failures++) {
      const waitMs = backoffMs(RECONNECT_BACKOFF, failures, Math.random);
      await pause(waitMs, undefined, { signal: this.#closed.signal }).catch(() => {}); // closing ends the wait
      if (this.#closed.signal.aborted) return;
      try {
        await this.open();
      } catch (err) {
        this.#logger.debug({ err, failures }, "the line for wake-ups is still down");
        continue;
      }
      this.#logger.info({ failures }, "the line for wake-ups is back");
      this.#sleepers.wakeAll(); // whatever was announced in between did not arrive
      return this.#outgoing.resume();
    }
  }
}
