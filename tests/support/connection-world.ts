import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Actor } from "../../infra/kernel/actor.ts";
import { type Clock, systemClock } from "../../infra/kernel/clock.ts";
import { PrivateExceptions } from "../../infra/net/public-address.ts";
import { AccountEvent } from "../../subgraphs/data/account-event/account-event.entity.ts";
import type { ConnectionAsk } from "../../subgraphs/data/connection/check-create.ts";
import { type ConnectionDeps, createConnection } from "../../subgraphs/data/connection/connection.commands.ts";
import { Connection } from "../../subgraphs/data/connection/connection.entity.ts";
import { pinConnection, releaseConnections } from "../../subgraphs/data/connection/connection-uses.ts";
import { dataEntities } from "../../subgraphs/data/entities.ts";
import { putSecret } from "../../subgraphs/data/secret/secret.commands.ts";
import { SecretBox } from "../../subgraphs/data/secret/secret-box.ts";
import { administrator } from "./actors.ts";
import { type TestDatabase, testDatabase } from "./database.ts";
import { startTlsPostgres, type TlsPostgres } from "./tls-postgres.ts";
import { startWandbServer, type WandbServer } from "./wandb-server.ts";

/** What the W&B server takes for a key. */
export const WANDB_KEY = "wandb-key-0123456789abcdef";

const OPEN = new PrivateExceptions(["localhost", "127.0.0.0/8"]);

/** What connections are made to: a customer's PostgreSQL and a W&B server, for the tests of one file. */
export class ConnectionWorld {
  database!: TestDatabase;
  postgres!: TlsPostgres;
  wandb!: WandbServer;
  now = new Date(0);
  readonly box = new SecretBox({ id: "mk-1", key: randomBytes(32) });
  /** The wall clock stands at `now`, time-outs are real. */
  readonly clock: Clock = {
    now: () => this.now,
    monotonicMs: () => systemClock.monotonicMs(),
    sleep: systemClock.sleep,
  };
  #teams = 0;

  /** Starts before the tests of the file that calls it and ends after them; each test begins at noon. */
  static forThisFile(): ConnectionWorld {
    const world = new ConnectionWorld();
    beforeAll(async () => {
      world.postgres = await startTlsPostgres();
      world.wandb = await startWandbServer(WANDB_KEY);
      world.database = await testDatabase(dataEntities);
    });
    afterAll(async () => {
      await Promise.all([world.database?.close(), world.postgres?.close(), world.wandb?.close()]);
    });
    beforeEach(() => {
      world.now = new Date("2026-03-01T12:00:00Z");
      world.wandb.behave("as the API");
    });
    return world;
  }

  /** A team's administrator, whom no other test knows. */
  administrator(): Actor {
    return administrator(`team_${++this.#teams}`);
  }

  deps(over: Partial<ConnectionDeps> = {}): ConnectionDeps {
    const { database, box, clock, wandb } = this;
    return { db: database.db, secretBox: box, exceptions: OPEN, clock, wandb, ...over };
  }

  put(actor: Actor, name: string, value: string) {
    return putSecret({ db: this.database.db, box: this.box }, actor, { name, value }, this.now);
  }

  create(actor: Actor, ask: Partial<ConnectionAsk> = {}, over: Partial<ConnectionDeps> = {}) {
    return createConnection(this.deps(over), actor, { name: "shop", kind: "postgres", secret: "DB", ...ask });
  }

  /** A connection to the customer's PostgreSQL with a secret of its own. */
  async databaseConnection(actor: Actor, ask: Partial<ConnectionAsk> = {}) {
    await this.put(actor, "DB", this.postgres.secret());
    return this.create(actor, ask);
  }

  /** Events of the team's stream, oldest first. */
  async events(actor: Actor): Promise<Record<string, unknown>[]> {
    const rows = await this.database.db.rows(AccountEvent, "where t.tenant_id = $1 order by t.seq", [actor.tenantId]);
    return rows.map(({ type, payload }) => ({ type, ...payload }));
  }

  stored(actor: Actor): Promise<Connection[]> {
    return this.database.db.rows(Connection, "where t.tenant_id = $1", [actor.tenantId]);
  }

  pin(actor: Actor, connectionId: string, holderId: string, keep?: { secretId: string; version: number }) {
    const { now } = this;
    return this.database.db.command((tx) =>
      pinConnection(tx, { tenantId: actor.tenantId, connectionId, holderId, now, ...(keep ? { keep } : {}) }),
    );
  }

  release(holderId: string) {
    return this.database.db.command((tx) => releaseConnections(tx, holderId));
  }
}

/** What a refusal with this code looks like to `toMatchObject`. */
export const refusal = (code: string, detail: object = {}) => ({ kind: { code }, detail });
