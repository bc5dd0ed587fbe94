import websocket from "@fastify/websocket";
import type { FastifyInstance } from "fastify";
import { buildSchema } from "graphql";
import { makeHandler } from "graphql-ws/use/@fastify/websocket";
import pg from "pg";
import type { BareDatabase } from "./bare-database.ts";

const SDL = `type Query { nothing: Int }
  type Subscription { silent(workloadId: ID!): Int workloadCursor(workloadId: ID!, after: Int): Int }`;
const LAST = "select id, event_seq from compute.workload where id = any($1)";

/** Subscriptions by GraphQL over WebSocket on one small schema: some never say anything, some tell a workload's last event. */
export async function bareSubscriptions(app: FastifyInstance, db: BareDatabase, url: string): Promise<void> {
  await app.register(websocket);
  const schema = buildSchema(SDL);
  const fields = schema.getSubscriptionType()!.getFields();
  const cursors = await Cursors.open(db, url);
  fields.silent!.subscribe = () => new Line();
  fields.workloadCursor!.subscribe = (_, { workloadId }: { workloadId: string }) => cursors.follow(workloadId);
  fields.workloadCursor!.resolve = (seq) => seq;
  app.register(async (scope) => {
    scope.get("/graphql", { websocket: true }, makeHandler({ schema, validate: () => [] }));
  });
}

/** One notification, one statement for all workloads that it names, and a push to each of their followers. */
class Cursors {
  readonly #lines = new Map<string, Set<Line<number>>>();
  readonly #db: BareDatabase;

  private constructor(db: BareDatabase) {
    this.#db = db;
  }

  static async open(db: BareDatabase, url: string): Promise<Cursors> {
    const cursors = new Cursors(db);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    client.on("notification", ({ payload = "" }) => {
      const ids = payload.split(" ").map((topic) => topic.replace("wl:", ""));
      void cursors.#tell(ids.filter((id) => cursors.#lines.has(id)));
    });
    await client.query("listen nodus_wakeups");
    return cursors;
  }

  follow(workloadId: string): Line<number> {
    const lines = this.#lines.get(workloadId) ?? new Set();
    this.#lines.set(workloadId, lines);
    const line = new Line<number>(() => lines.delete(line));
    lines.add(line);
    void this.#cursorsOf([workloadId]).then(([now]) => line.push(now!.event_seq));
    return line;
  }

  async #tell(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    for (const { id, event_seq } of await this.#cursorsOf(ids))
      for (const line of this.#lines.get(id) ?? []) line.push(event_seq);
  }

  #cursorsOf(ids: readonly string[]): Promise<{ id: string; event_seq: number }[]> {
    return this.#db.sql(LAST, [ids]);
  }
}

/** Values as they are pushed; silent until then. */
class Line<T = never> implements AsyncIterableIterator<T> {
  readonly #values: T[] = [];
  readonly #onEnd: () => void;
  #waiting: ((result: IteratorResult<T>) => void) | null = null;

  constructor(onEnd = () => {}) {
    this.#onEnd = onEnd;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  push(value: T): void {
    if (!this.#waiting) return void this.#values.push(value);
    this.#waiting({ done: false, value });
    this.#waiting = null;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#values.length > 0) return Promise.resolve({ done: false, value: this.#values.shift()! });
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  return(): Promise<IteratorResult<T>> {
    this.#onEnd();
    this.#waiting?.({ done: true, value: undefined });
    return Promise.resolve({ done: true, value: undefined });
  }
}
